// conversation: makes requests from the turns of a conversation. Each request carries all earlier
// prompts and answers. Only one thread at a time may use an object.
#pragma once

#include <cstddef>
#include <vector>

#include "tools/twill-bench/engine/record.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

class conversation {
public:
  /// The request for a turn: all earlier prompts and answers, then the prompt of this turn.
  prompt ask(const prompt& turn);
  /// Adds the answer to the conversation. In a conversation of token ids, the answer is left out
  /// when the server sends no ids.
  void answered(const record& reply);

private:
  prompt asked_;
};

/// Returns the indices of the prompts that begin a conversation, one index per conversation. The
/// prompts after each of them, up to the next, are further turns.
std::vector<std::size_t> conversation_starts(const std::vector<prompt>& prompts);

} // namespace twill::bench
