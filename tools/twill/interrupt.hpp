// Ctrl-C as a counter. Calls that block in the kernel return early with EINTR.
#pragma once

namespace twill::tools {

/// From now on SIGINT, and with `terminations` SIGTERM, count instead of ending the process.
void count_interrupts(bool terminations = false);
/// Interrupts since the last call of clear_interrupts().
int interrupts();
void clear_interrupts();

} // namespace twill::tools
