// Asks Linux for short time slices, so that twilld stays quick on cores that it shares.
#pragma once

namespace twill::tools {

/// Asks the kernel for time slices of 0.1 ms, for this thread and every thread that it starts
/// later. The threads of a step wait for each other, and a short slice brings a thread that waits
/// for its core back sooner. The process's share of the time, its nice value and real-time policies
/// stay as they are. The call does nothing on Linux before 6.12, which knows no such request, and
/// where the kernel refuses it.
void ask_for_short_slices();

} // namespace twill::tools
