// scarce_memory: what happens before an allocation fails.
//
// An allocation that fails throws std::bad_alloc, which ends the request or the actor that asked.
// Some places cannot bear that: a library that drops a message when its queue cannot grow leaves
// somebody waiting for ever. Memory is often short for a moment only, while other requests end. So
// a failing allocation first uses up a reserve that is kept for this, then waits up to a twentieth
// of a second, trying again and again, and only then throws.
//
// Any thread. It concerns operator new of the whole process, so programs call it, libraries do not.
#pragma once

#include <cstddef>

namespace twill {

/// Installs the above, with a reserve of so many bytes. Call it once, at the beginning.
void prepare_for_scarce_memory(std::size_t reserve_bytes = std::size_t{8} << 20);

/// Takes the reserve again after it was used, where memory is free now. Costs nothing when it is
/// there.
void restore_memory_reserve() noexcept;

} // namespace twill
