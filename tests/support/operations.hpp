// Property tests of stateful objects: random sequences of operations, and a search for the shortest
// sequence that still fails.
//
// A test interprets each operation itself: it takes the operation's four numbers (kind, a, b, c)
// modulo the numbers of choices that its object offers at that moment, so every sequence is valid,
// even after operations were removed. RapidCheck makes the sequences and shrinks the first one that
// fails: it removes operations and lowers their numbers as long as the property still fails.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace twill::test {

struct operation {
  std::uint32_t kind = 0;
  std::uint32_t a = 0, b = 0, c = 0;
};
using operations = std::vector<operation>;

/// Thrown when a property does not hold. Catch2's REQUIRE must not be used within a property: it
/// would end the test before the sequence is shrunk.
struct broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws `broken` unless `holds`.
inline void demand(bool holds, const std::string& what) {
  if (!holds) throw broken(what);
}

/// Throws `broken` with both numbers unless they are equal.
template <class Is, class Expected>
void demand_equal(const Is& is, const Expected& expected, const std::string& what) {
  if (!(is == expected))
    throw broken(what + " is " + std::to_string(is) + ", expected " + std::to_string(expected));
}

/// How many of `n` random cases this build tries. With sanitizers it is an eighth of them, since
/// sanitizers slow a build down by about that factor. Sanitizers look for memory faults, which show
/// in fewer cases.
constexpr int cases_here(int n) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return n / 8 + 1;
#else
  return n;
#endif
}

struct sequences {
  int cases = 200;         ///< this build tries cases_here(cases)
  int long_cases = 20'000; ///< where the environment has TWILL_LONG
  int most_operations = 100;
};

/// Runs `property` on random sequences until it fails for one, and shrinks that sequence. Returns
/// an empty string if none failed; otherwise what the shortest sequence broke, the sequence, and
/// the seed. The environment variable TWILL_SEED may set the seed; without it every run has the
/// same sequences.
std::string first_failure(const sequences& which,
                          const std::function<void(const operations&)>& property);

} // namespace twill::test
