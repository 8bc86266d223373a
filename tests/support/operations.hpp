// Random sequences of operations against something that has a state, and the shortest sequence that
// still fails.
//
// A test reads each operation as it likes: it takes `kind` and the three numbers modulo what its
// object has at that moment. So every sequence means something, also one from which operations were
// removed. RapidCheck makes the sequences and shrinks the first that fails: it removes operations
// and lowers their numbers as long as the property still fails.
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

/// A property does not hold. Within a property Catch2's REQUIRE must not be used: it would end the
/// test before the sequence is shrunk.
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

/// How many of `n` random cases this build tries: an eighth of them with sanitizers. Such a build
/// is about so much slower, and is there for faults of memory, which show in fewer cases.
constexpr int cases_here(int n) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return n / 8 + 1;
#else
  return n;
#endif
}

struct sequences {
  int cases = 200;         ///< of which this build tries cases_here()
  int long_cases = 20'000; ///< where the environment has TWILL_LONG
  int most_operations = 100;
};

/// Runs `property` on random sequences until one fails, and shrinks that one. Returns an empty
/// string; or what was broken by the shortest sequence, the sequence, and the seed. The environment
/// may give TWILL_SEED; without it every run has the same sequences.
std::string first_failure(const sequences& which,
                          const std::function<void(const operations&)>& property);

} // namespace twill::test
