// random: counter-based random numbers. A stream is the sequence of 64-bit words of one key, and
// any word of it can be computed without stored state.
//
// Pure functions. The words of a stream are the SplitMix64 sequence (Steele, Lea, Flood 2014) that
// starts at the stream's key. Any word of the sequence costs as much as the first.
#pragma once

#include <cstdint>
#include <string_view>

namespace twill::models::synth {

inline std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Returns the key of the stream `name`: the FNV-1a hash of the name, mixed with `seed`.
inline std::uint64_t stream_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return mixed(hash + mixed(seed + 0x9e3779b97f4a7c15U));
}

inline std::uint64_t random_word(std::uint64_t key, std::uint64_t index) {
  return mixed(key + (index + 1) * 0x9e3779b97f4a7c15U);
}

} // namespace twill::models::synth
