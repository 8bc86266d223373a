// random: small, seeded random draws that give the same numbers with every standard library.
//
// The standard fixes std::mt19937_64 but not its distributions, so this file has its own
// distributions. An object is used by one thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace twill::bench {

class random_source {
public:
  explicit random_source(std::uint64_t seed) : bits_(seed) {}

  /// Uniform in [0, 1), with 53 random bits.
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1.0p-53; }

  /// Uniform in [low, high], both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<double>(high - low + 1);
    return low + static_cast<std::int64_t>(uniform() * width);
  }

  /// Normal distribution with mean 0 and variance 1 (Box and Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * 3.14159265358979323846 * uniform());
  }

  /// Gamma distribution with mean shape * scale and variance shape * scale^2 (Marsaglia and Tsang
  /// 2000).
  double gamma(double shape, double scale) {
    if (shape < 1.0) return gamma(shape + 1.0, scale) * std::pow(1.0 - uniform(), 1.0 / shape);
    const double d = shape - 1.0 / 3.0;
    const double c = 1.0 / std::sqrt(9.0 * d);
    for (;;) {
      const double x = normal();
      const double v = std::pow(1.0 + c * x, 3.0);
      if (v <= 0.0) continue;
      if (std::log(1.0 - uniform()) < 0.5 * x * x + d * (1.0 - v + std::log(v)))
        return d * v * scale;
    }
  }

private:
  std::mt19937_64 bits_;
};

} // namespace twill::bench
