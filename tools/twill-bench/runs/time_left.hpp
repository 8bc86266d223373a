// time_left: how long the rest of a sweep will take, from what its done phases took. Pure
// functions.
#pragma once

#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

/// Seconds for the phases that are not measured yet, without the `current` one. Decoding a token
/// is taken to cost ten times a prompt token; each kind of phase has its own speed, and borrows the
/// other's while it has none. 0 before the first phase.
double seconds_left(const sweep& of, const sweep_cell& current, bool current_is_throughput);

} // namespace twill::bench
