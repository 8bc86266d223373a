#include "net/protocol/codec.hpp"

#include <chrono>
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

reply_identity make_identity(std::string_view id_prefix, const actors::model_info& model) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {make_id(id_prefix), model.id,
          std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

} // namespace twill::net
