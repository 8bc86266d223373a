// event_id: names an event of a stored stream in server-sent events, as ID:NUMBER. A client that
// lost its connection sends the last one that it saw as Last-Event-ID (the HTML standard, section
// 9.2), and gets what comes after it. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twill::net {

struct event_place {
  std::string id; ///< of the stored response
  std::int64_t number = 0;
};

inline std::string event_id(std::string_view id, std::int64_t number) {
  return std::string(id) + ':' + std::to_string(number);
}

/// A number of an event as text; nothing where it is none.
inline std::optional<std::int64_t> read_event_number(std::string_view text) {
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end || number < 0) return std::nullopt;
  return number;
}

/// Nothing where the text is no such name.
inline std::optional<event_place> read_event_id(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto number = read_event_number(text.substr(colon + 1));
  if (!number) return std::nullopt;
  return event_place{std::string(text.substr(0, colon)), *number};
}

} // namespace twill::net
