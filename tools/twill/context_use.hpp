// context_use: describes in words how full a conversation makes the model's context. The functions
// are pure.
#pragma once

#include <cstdint>
#include <string>

namespace twill::tools {

struct context_use {
  std::int64_t used_tokens = 0;  ///< prompt and output of the last turn; 0: no turn yet
  std::int64_t limit_tokens = 0; ///< the length of the model's context; 0: unknown
  bool drops_turns = false;      ///< the daemon leaves out the oldest turns when the context is
                                 ///< full

  std::int64_t percent() const;
  /// Whether at least 80 % of the context is used.
  bool nearly_full() const;
  bool full() const { return limit_tokens > 0 && used_tokens >= limit_tokens; }
};

/// The text that the chat command `/context` shows.
std::string described(const context_use& use);

/// What a user can do when the conversation no longer fits into the context, or barely does.
std::string advice(const context_use& use);

} // namespace twill::tools
