// replay: has the batcher, the scheduler and the block pool of this program decide again about what
// a trace (`scheduler.trace`) says they saw, and compares.
//
// Pure but for reading; no actors, no clock. Any text is safe: a line that makes no sense ends the
// replay with `unreadable`.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

namespace twill::actors {

struct replay_outcome {
  enum class verdict : std::uint8_t {
    same,       ///< every decision of the trace was made again
    different,  ///< `what` tells the first that was not
    unreadable, ///< `what` says why it is no trace
  } what_came = verdict::same;
  std::string what;
  std::uint64_t line = 0; ///< that `what` is about
  std::uint64_t lines = 0;
  std::uint64_t schedulers = 0; ///< streams in the trace
  std::uint64_t requests = 0;
  std::uint64_t decisions = 0; ///< that were compared
  bool cut = false;            ///< the last line is not whole, and was left out
};

replay_outcome replay(std::istream& trace);

} // namespace twill::actors
