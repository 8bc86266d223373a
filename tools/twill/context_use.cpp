#include "tools/twill/context_use.hpp"

#include <algorithm>

namespace twill::tools {
namespace {

constexpr std::int64_t nearly_full_percent = 80;

} // namespace

std::int64_t context_use::percent() const {
  if (limit_tokens <= 0) return 0;
  // The numbers come from a server and may have any value.
  const double share = static_cast<double>(used_tokens) / static_cast<double>(limit_tokens);
  return static_cast<std::int64_t>(100 * std::clamp(share, 0.0, 10.0));
}

bool context_use::nearly_full() const {
  return percent() >= nearly_full_percent;
}

std::string described(const context_use& use) {
  const auto limit = std::to_string(use.limit_tokens) + " tokens";
  std::string text;
  if (use.used_tokens == 0)
    text = "Nothing was said yet" +
           (use.limit_tokens > 0 ? "; the context holds " + limit : std::string()) + ".";
  else if (use.limit_tokens == 0)
    text = std::to_string(use.used_tokens) + " tokens are in the context.";
  else
    text = std::to_string(use.used_tokens) + " of " + limit + " are in the context, " +
           std::to_string(use.percent()) + " %.";
  text += use.drops_turns ? " When it is full, the oldest turns are left out (/truncation auto)."
                          : " When it is full, nothing more can be said (/truncation disabled).";
  return use.nearly_full() && !use.drops_turns ? text + " " + advice(use) : text;
}

std::string advice(const context_use& use) {
  return use.drops_turns || use.used_tokens == 0
             ? "The message alone is too long; say it shorter."
             : "/clear begins a new conversation; /truncation auto goes on with this one and "
               "leaves out its oldest turns.";
}

} // namespace twill::tools
