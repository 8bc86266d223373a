#include "models/offload/checksum.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace twill::models::offload {
namespace {

constexpr std::uint64_t odd_1 = 0x9e3779b185ebca87ULL;
constexpr std::uint64_t odd_2 = 0xc2b2ae3d27d4eb4fULL;

std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * odd_2, 31) * odd_1;
}

} // namespace

std::uint64_t checksum(const void* data, std::int64_t bytes) {
  constexpr std::int64_t width = 64;
  const auto* at = static_cast<const unsigned char*>(data);
  std::array<std::uint64_t, 8> lanes{};
  for (std::size_t i = 0; i < lanes.size(); ++i)
    lanes[i] = odd_1 * (i + 1);
  std::array<std::uint64_t, 8> words;
  std::int64_t done = 0;
  for (; done + width <= bytes; done += width) {
    std::memcpy(words.data(), at + done, width);
    for (std::size_t i = 0; i < lanes.size(); ++i)
      lanes[i] = mixed(lanes[i], words[i]);
  }
  words.fill(0);
  if (done < bytes) std::memcpy(words.data(), at + done, static_cast<std::size_t>(bytes - done));
  std::uint64_t sum = static_cast<std::uint64_t>(bytes);
  for (std::size_t i = 0; i < lanes.size(); ++i)
    sum = mixed(sum ^ mixed(lanes[i], words[i]), lanes[i]);
  return sum ^ (sum >> 32);
}

} // namespace twill::models::offload
