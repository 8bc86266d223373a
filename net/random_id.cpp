#include "net/random_id.hpp"

#include <random>

namespace twill::net {

std::string make_id(std::string_view prefix) {
  static constexpr char digits[] = "0123456789abcdef";
  thread_local std::mt19937_64 random{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  std::string id(prefix);
  for (int half = 0; half < 2; ++half) {
    auto bits = random();
    for (int i = 0; i < 12; ++i, bits >>= 4)
      id += digits[bits & 15];
  }
  return id;
}

} // namespace twill::net
