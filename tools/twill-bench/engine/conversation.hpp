// conversation: turns into requests: every turn carries all that was said before it. One thread.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/twill-bench/engine/record.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

class conversation {
public:
  /// The request of a turn: the prompts and answers so far, then its own.
  prompt ask(const prompt& turn);
  /// A server that sends no ids leaves its answer out of a conversation in ids.
  void answered(const record& reply);

private:
  prompt asked_;
};

/// Where each conversation begins: prompts that follow none. // (n_conversations)
std::vector<std::size_t> conversation_starts(const std::vector<prompt>& prompts);

} // namespace twill::bench
