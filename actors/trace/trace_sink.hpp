// trace_sink: receives the lines of a scheduler_trace. The parameter `body` is a line without its
// stream number and time, as JSON members: `"e":"plan","rows":"1-3"`. It is valid during the call
// only.
#pragma once

#include <chrono>
#include <string_view>

namespace twill::actors {

class trace_sink {
public:
  virtual ~trace_sink() = default;
  /// The batcher received an input: an order, a result or an answer.
  virtual void saw(std::chrono::nanoseconds at, std::string_view body) = 0;
  /// The batcher made a decision, as a consequence of its last input.
  virtual void decided(std::chrono::nanoseconds at, std::string_view body) = 0;
  /// Nothing is under way: a good time to write.
  virtual void rested() {}
};

} // namespace twill::actors
