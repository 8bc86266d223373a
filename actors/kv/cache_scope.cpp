#include "actors/kv/cache_scope.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <random>
#include <string>

namespace twill::actors {

namespace {

struct secret {
  std::uint64_t first, second;
};

const secret& process_secret() {
  static const secret drawn = [] {
    std::random_device source;
    const auto word = [&] {
      return (static_cast<std::uint64_t>(source()) << 32) | static_cast<std::uint64_t>(source());
    };
    const std::uint64_t first = word();
    return secret{first, word()};
  }();
  return drawn;
}

class sip_state {
public:
  explicit sip_state(const secret& key)
      : v_{key.first ^ 0x736f6d6570736575ULL, key.second ^ 0x646f72616e646f6dULL,
           key.first ^ 0x6c7967656e657261ULL, key.second ^ 0x7465646279746573ULL} {}

  void add(std::uint64_t word) {
    v_[3] ^= word;
    rounds(2);
    v_[0] ^= word;
  }
  std::uint64_t finish() {
    v_[2] ^= 0xff;
    rounds(4);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

private:
  void rounds(int n) {
    auto& [a, b, c, d] = v_;
    for (; n > 0; --n) {
      a += b;
      b = std::rotl(b, 13) ^ a;
      a = std::rotl(a, 32);
      c += d;
      d = std::rotl(d, 16) ^ c;
      a += d;
      d = std::rotl(d, 21) ^ a;
      c += b;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }
  std::array<std::uint64_t, 4> v_;
};

std::uint64_t keyed_hash(std::string_view text) {
  sip_state state(process_secret());
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (8 * (i % 8));
    if (i % 8 != 7) continue;
    state.add(word);
    word = 0;
  }
  state.add(word | static_cast<std::uint64_t>(text.size()) << 56);
  return state.finish();
}

} // namespace

std::uint64_t cache_scope(std::string_view tenant, std::string_view salt) {
  if (tenant.empty() && salt.empty()) return 0;
  // A name holds no null character, so that tenant and salt can be told apart.
  std::string both(tenant);
  both += '\0';
  both += salt;
  const std::uint64_t scope = keyed_hash(both);
  return scope == 0 ? 1 : scope;
}

} // namespace twill::actors
