// job: what all I/O threads of one run share. A thread takes the next index from it, and only the
// thread that took an index writes the record of that index.
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
  const std::vector<double>& due_s;        // (n_prompts) of a later turn: not used
  const std::vector<cancel_plan>& cancels; // (n_prompts)
  std::vector<record>& records;            // (n_prompts)
  progress_counts& counts;
  std::atomic<bool>& stop;   ///< running requests end now
  std::atomic<bool>& closed; ///< no request is sent any more; running requests go on
  std::size_t first_id; ///< ids are not used twice: a late frame of an earlier run may still come
  clock::time_point t0;
  std::atomic<std::size_t> next{0}; ///< conversation

  bool over() const { return stop || closed || counts.refused_status != 0; }
};

} // namespace twill::bench
