// event_id: the ids of the server-sent events of a stored stream, which have the form ID:NUMBER. A
// client that lost its connection sends the last id that it received in the header Last-Event-ID
// (the HTML standard, section 9.2), and gets the events after it. The functions are pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twill::net {

struct event_place {
  std::string id; ///< id of the stored response
  std::int64_t number = 0;
};

inline std::string event_id(std::string_view id, std::int64_t number) {
  return std::string(id) + ':' + std::to_string(number);
}

/// Parses the number of an event; nullopt if `text` is not such a number.
inline std::optional<std::int64_t> read_event_number(std::string_view text) {
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end || number < 0) return std::nullopt;
  return number;
}

/// Parses an event id; nullopt if `text` is not of the form ID:NUMBER.
inline std::optional<event_place> read_event_id(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto number = read_event_number(text.substr(colon + 1));
  if (!number) return std::nullopt;
  return event_place{std::string(text.substr(0, colon)), *number};
}

} // namespace twill::net
