// trace_parent: parses the `traceparent` header of W3C Trace Context, with which a caller says to
// which trace its request belongs. The functions are pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace twill::net {

using trace_id = std::array<std::uint8_t, 16>;
using span_id = std::array<std::uint8_t, 8>;

struct trace_parent {
  trace_id trace{};
  span_id span{};
  bool sampled = false; ///< the caller records its own spans of this trace
};

/// Returns nothing if the text is empty or not a valid `traceparent`; the standard requires that an
/// invalid header is ignored. Later versions of the format are read as far as they agree with
/// version 00.
std::optional<trace_parent> read_trace_parent(std::string_view text);

} // namespace twill::net
