// time_left: estimates how long the rest of a sweep (sweep.hpp) will take, from the time that its
// finished measurements took. The functions are pure.
#pragma once

#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

/// Seconds for the phases that are not measured yet, without the phase of `current` that is being
/// measured. A phase measures either the latency or the throughput of one cell of the sweep.
/// Decoding a token is assumed to cost ten times as much as a prompt token. Latency and throughput
/// phases have separate speeds; while one of them has no finished phase, the speed of the other is
/// used. The result is 0 before the first phase is finished.
double seconds_left(const sweep& of, const sweep_cell& current, bool current_is_throughput);

} // namespace twill::bench
