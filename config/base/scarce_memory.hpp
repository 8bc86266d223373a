// scarce_memory: delays the failure of allocations when memory is short.
//
// An allocation that fails throws std::bad_alloc, which ends the request or the actor that made it.
// Some code cannot handle that: a library that drops a message when its queue cannot grow leaves
// the message's receiver waiting for ever. Memory is often short only for a moment, while other
// requests end. So a failing allocation first uses up a reserve kept for this purpose, then retries
// for up to a twentieth of a second, and only then throws.
//
// Any thread may call the functions. prepare_for_scarce_memory() affects operator new of the whole
// process, so only a program may call it, never a library.
#pragma once

#include <cstddef>

namespace twill {

/// Installs this behaviour, with a reserve of `reserve_bytes`. Call it once, at the beginning.
void prepare_for_scarce_memory(std::size_t reserve_bytes = std::size_t{8} << 20);

/// Allocates the reserve again after it was used, if memory is free now. Costs nothing if the
/// reserve is intact.
void restore_memory_reserve() noexcept;

} // namespace twill
