// TWILL_ASSERT(cond, "message"): stops the process in every build type.
//
// Use it only for errors of the programmer: no user input may make the condition false.
#pragma once

#include <cstdio>
#include <cstdlib>

#define TWILL_ASSERT(condition, message)                                                           \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::twill::assertion_failed(#condition, message, __FILE__, __LINE__);                          \
  } while (false)

namespace twill {

[[noreturn]] inline void assertion_failed(const char* condition, const char* message,
                                          const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion '%s' failed: %s\n", file, line, condition, message);
  std::abort();
}

} // namespace twill
