// A call's reply to scripted events, and a parser for the events of a stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

namespace twill::testing {

/// The whole reply of a call with one request.
inline std::string play(net::call& c, std::vector<actors::event> events) {
  std::string out;
  for (auto& ev : events)
    c.encoder->on_event(0, std::move(ev), out);
  c.encoder->on_end(out);
  return out;
}

/// The JSON of server-sent events, each of which must begin with this prefix.
inline std::vector<value> stream_events(const std::string& stream, std::string_view prefix) {
  std::vector<value> out;
  std::size_t start = 0;
  while (start < stream.size()) {
    const auto end = stream.find("\n\n", start);
    REQUIRE(end != std::string::npos);
    const auto event = stream.substr(start, end - start);
    REQUIRE(event.starts_with(prefix));
    out.push_back(json(event.substr(prefix.size())));
    start = end + 2;
  }
  return out;
}

} // namespace twill::testing
