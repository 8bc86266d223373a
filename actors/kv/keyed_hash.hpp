// keyed_hash: SipHash-2-4 over 64-bit words. Without the key, an input with a chosen hash cannot be
// made up. The functions are pure.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace twill::actors {

struct hash_key {
  std::uint64_t first = 0, second = 0;
};

class keyed_hash {
public:
  explicit keyed_hash(const hash_key& key)
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

} // namespace twill::actors
