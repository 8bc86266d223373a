// sse_parser: parses server-sent events from a byte stream, however it is split.
//
// It follows the WHATWG HTML standard, section 9.2.6, for `data` fields and skips other fields and
// comments (keep-alive pings). It is not bound to a socket. An event longer than the limit is an
// error.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace twill::bench {

class sse_parser {
public:
  static constexpr std::size_t max_event_bytes = 64u << 20;

  /// Calls on_event(data) for every event that `bytes` completes; when on_event returns false, the
  /// remaining bytes are dropped. feed() returns false when an event is too long.
  bool feed(std::string_view bytes, const std::function<bool(std::string_view)>& on_event);
  /// True when the parser holds no part of an unfinished event.
  bool at_boundary() const { return line_.empty() && data_.empty(); }

private:
  void take_line(std::string_view line);

  std::string line_; ///< an unfinished line
  std::string data_; ///< the data lines so far of the current event
  bool has_data_ = false;
  bool after_cr_ = false; ///< the last byte was CR: a following LF belongs to it
};

} // namespace twill::bench
