// Ctrl-C as a counter, and signals that end a program as a note. Calls that block in the kernel
// return early with EINTR.
#pragma once

namespace twill::tools {

/// From now on SIGINT, and with `terminations` SIGTERM, count instead of ending the process.
void count_interrupts(bool terminations = false);
/// Interrupts since the last call of clear_interrupts().
int interrupts();
void clear_interrupts();

/// From now on the first SIGTERM or SIGHUP (the terminal was closed) is noted instead of ending the
/// process, which then ends by itself and leaves its terminal and files in order.
void note_endings();
/// The signal that was noted; 0: none. Shells expect the exit status 128 + signal.
int noted_ending();

} // namespace twill::tools
