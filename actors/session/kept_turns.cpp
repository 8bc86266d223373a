#include "actors/session/kept_turns.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>
#include <vector>

namespace twill::actors {
namespace {

bool has_role(const value& message, const char* role) {
  const value* given = message.find("role");
  return given != nullptr && *given == value(role);
}

bool stays(const value& message) {
  return has_role(message, "system") || has_role(message, "developer");
}

/// The index of each turn's first message. Messages before the first user's message belong to the
/// first turn.
std::vector<std::size_t> begins_of(const value_list& messages) {
  std::vector<std::size_t> begins{0};
  bool in_first = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (has_role(messages[i], "user")) {
      if (in_first) begins.push_back(i);
      in_first = true;
    }
  }
  return begins;
}

} // namespace

value_list newest_turns(const value_list& messages, const std::function<bool(value_list)>& fits) {
  const auto begins = begins_of(messages);
  const std::size_t turns = begins.size();
  if (turns == 1) return messages;
  const auto newest = [&](std::size_t kept) {
    const std::size_t begin = begins[turns - kept];
    value_list out;
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (i >= begin || stays(messages[i])) out.push_back(messages[i]);
    return out;
  };
  // The search begins with few turns at the end of the chat, so that its work depends on how much
  // fits and not on the length of the chat. The newest `good` turns fit, or are kept in any case;
  // the newest `bad` turns may be too many.
  std::size_t good = 1, bad = 2;
  while (bad < turns && fits(newest(bad))) {
    good = bad;
    bad *= 2;
  }
  bad = std::min(bad, turns);
  while (bad - good > 1) {
    const std::size_t middle = good + (bad - good) / 2;
    (fits(newest(middle)) ? good : bad) = middle;
  }
  const std::size_t stride = std::bit_floor(std::max<std::size_t>(good / 4, 1));
  const std::size_t dropped = (turns - good + stride - 1) / stride * stride;
  return newest(std::max<std::size_t>(turns - std::min(dropped, turns - 1), 1));
}

} // namespace twill::actors
