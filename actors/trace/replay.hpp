// replay: runs this program's batcher, scheduler and block pool on the inputs recorded in a trace
// (`scheduler.trace`), and compares their decisions with the recorded ones.
//
// Pure except for reading; no actors, no clock. Any input text is safe: a line that cannot be
// parsed ends the replay with `unreadable`.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace twill::actors {

struct replay_outcome {
  enum class verdict : std::uint8_t {
    same,       ///< every decision of the trace was made again
    different,  ///< `what` describes the first decision that differs
    unreadable, ///< `what` says why the text is no trace
  } what_came = verdict::same;
  std::string what;
  std::uint64_t line = 0; ///< the line that `what` describes
  std::uint64_t lines = 0;
  std::uint64_t schedulers = 0; ///< streams in the trace
  std::uint64_t requests = 0;
  std::uint64_t decisions = 0; ///< decisions that were compared
  bool cut = false;            ///< the last line is not whole, and was left out
};

replay_outcome replay(std::istream& trace);

} // namespace twill::actors
