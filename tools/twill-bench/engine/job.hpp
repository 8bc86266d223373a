// job: the data that all I/O threads of one run share. Each thread takes the next conversation from
// `next`, and only that thread writes the records of the conversation.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "tools/twill-bench/engine/exchange.hpp"
#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/record.hpp"
#include "tools/twill-bench/engine/run.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

struct job {
  const serve_options& options;
  const protocol& dialect;
  const std::vector<prompt>& prompts;      // (n_prompts)
  const std::vector<std::size_t>& starts;  // (n_conversations) first prompts
  const std::vector<double>& due_s;        // (n_prompts) not used for later turns of a conversation
  const std::vector<cancel_plan>& cancels; // (n_prompts)
  std::vector<record>& records;            // (n_prompts)
  progress_counts& counts;
  std::atomic<bool>& stop;   ///< running requests end now
  std::atomic<bool>& closed; ///< no request is sent any more; running requests go on
  /// No id is used twice, because a late frame of an earlier run may still arrive.
  std::size_t first_id;
  clock::time_point t0;
  std::atomic<std::size_t> next{0}; ///< index of the next conversation

  bool over() const { return stop || closed || counts.refused_status != 0; }
};

} // namespace twill::bench
