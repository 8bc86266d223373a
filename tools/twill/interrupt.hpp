// interrupt: counts Ctrl-C, and records a signal that asks the program to end. System calls that
// block return early with EINTR when such a signal arrives.
#pragma once

namespace twill::tools {

/// From now on SIGINT, and with `terminations` also SIGTERM, is counted. Only the third one ends
/// the process.
void count_interrupts(bool terminations = false);
/// The number of interrupts since the last call of clear_interrupts().
int interrupts();
void clear_interrupts();

/// From now on the first SIGTERM or SIGHUP (the terminal was closed) is recorded instead of ending
/// the process. The program must poll noted_ending() and then end in an orderly way, so that it
/// leaves its terminal and files in order.
void note_endings();
/// The recorded signal; 0: none. By the convention of shells the exit status is then 128 + signal.
int noted_ending();

} // namespace twill::tools
