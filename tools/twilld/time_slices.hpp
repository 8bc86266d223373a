// time_slices: requests short scheduler time slices from Linux, so that twilld reacts quickly on
// cores that it shares.
#pragma once

namespace twill::tools {

/// Requests time slices of 0.1 ms for the calling thread and every thread that it starts later. The
/// threads of a step wait for each other, and with a short slice a thread that waits for its core
/// runs again sooner. The process's share of CPU time, its nice value and real-time policies stay
/// unchanged. The call does nothing on Linux before 6.12, which does not support such requests, and
/// when the kernel refuses the request.
void ask_for_short_slices();

} // namespace twill::tools
