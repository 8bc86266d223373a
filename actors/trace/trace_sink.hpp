// trace_sink: where the lines of a scheduler_trace go. A body is what a line says without its
// beginning, as JSON members: `"e":"plan","rows":"1-3"`. It is valid during the call only.
#pragma once

#include <chrono>
#include <string_view>

namespace twill::actors {

class trace_sink {
public:
  virtual ~trace_sink() = default;
  /// Something came from outside: an order, a result, an answer.
  virtual void saw(std::chrono::nanoseconds at, std::string_view body) = 0;
  /// The scheduler decided something, as a consequence of what was seen last.
  virtual void decided(std::chrono::nanoseconds at, std::string_view body) = 0;
  /// Nothing is under way: a good time to write.
  virtual void rested() {}
};

} // namespace twill::actors
