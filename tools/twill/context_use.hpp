// context_use: how full a conversation makes the model's context, in words. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace twill::tools {

struct context_use {
  std::int64_t used_tokens = 0;  ///< prompt and output of the last turn; 0: nothing was said
  std::int64_t limit_tokens = 0; ///< the model's; 0: unknown
  bool drops_turns = false;      ///< the daemon leaves out the oldest turns

  std::int64_t percent() const;
  /// 80 % at least.
  bool nearly_full() const;
  bool full() const { return limit_tokens > 0 && used_tokens >= limit_tokens; }
};

/// For `/context`.
std::string described(const context_use& use);

/// What a user may do whose conversation does not fit, or hardly.
std::string advice(const context_use& use);

} // namespace twill::tools
