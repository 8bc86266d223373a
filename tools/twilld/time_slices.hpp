// How long this process's threads run before others' turn, where cores are shared.
#pragma once

namespace twill::tools {

/// Asks the scheduler for slices of 0.1 ms, for this thread and those that it starts from then on.
/// Threads of a step wait for each other: short slices bring one that waits for its core back
/// sooner. Beside two busy processes twilld makes 10 to 12 % more tokens than with slices of 1 ms,
/// alone no fewer (tools/twill-bench/results, "A shared machine"). Its share of the time, its nice
/// value and real time policies stay as they are. Does nothing where the system knows no such
/// request (Linux before 6.12) or refuses it.
void ask_for_short_slices();

} // namespace twill::tools
