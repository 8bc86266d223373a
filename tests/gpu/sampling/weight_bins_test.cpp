// Sums of sampling weights that do not depend on the order of summation, and the arithmetic of
// splitting a row of logits into parts, for rows so long that no test has memory for them.
#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gpu/sampling/detail/row_math.hpp"
#include "gpu/sampling/detail/row_parts.hpp"
#include "gpu/sampling/detail/weight_bins.hpp"

using namespace twill;
using namespace twill::gpu::detail;

namespace {

/// Weights of every magnitude, subnormal ones, 0 and 1 among them.
std::vector<float> weights(std::size_t n) {
  std::mt19937 rng(5);
  std::vector<float> all{0.0f, 1.0f, std::numeric_limits<float>::denorm_min(),
                         std::numeric_limits<float>::min(), 1.0f - 0x1p-24f};
  while (all.size() < n)
    all.push_back(bits_to_f32(static_cast<std::uint32_t>(rng() % (weight_of_one + 1))));
  return all;
}

} // namespace

TEST_CASE("a bin's count and rest give the exact sum of its weights at every level") {
  const auto all = weights(3000);
  for (int level = 1; level <= bin_levels; ++level)
    for (const float first : {all[1], all[2], all[3], all[17], all[18], all[19]}) {
      const std::uint32_t edge = f32_to_bits(first) >> bin_shift(level) << bin_shift(level);
      double sum = 0;
      std::uint32_t count = 0;
      std::uint64_t rest = 0;
      for (const float w : all) {
        const std::uint32_t bits = f32_to_bits(w);
        if (!in_bin(bits, edge, level)) continue;
        CHECK(bin_of(bits, level) == bin_of(edge, level));
        sum += static_cast<double>(w); // exact: few weights of one exponent
        ++count;
        rest += rest_of(bits, level);
      }
      CAPTURE(level, first);
      CHECK(count > 0);
      CHECK(bin_mass(edge, count, rest) == sum);
    }
}

TEST_CASE("a part's sums fit 32 bits, and a row's units 64, at the largest sizes") {
  CHECK(std::uint64_t{part_len} * rest_of(weight_of_one - 1, 1) <=
        std::numeric_limits<std::uint32_t>::max());
  for (const std::int64_t n :
       {std::int64_t{1}, std::int64_t{152064}, std::int64_t{1} << 20, std::int64_t{most_vocab}}) {
    const mass_units units(n);
    CAPTURE(n);
    const std::uint64_t one = units(weight_of_one);
    CHECK(one == std::uint64_t{1} << units.bits);
    CHECK(one <= std::numeric_limits<std::uint64_t>::max() / 2 / static_cast<std::uint64_t>(n));
    for (const float w : weights(500)) {
      const double exact = std::ldexp(static_cast<double>(w), units.bits);
      CHECK(units(f32_to_bits(w)) == static_cast<std::uint64_t>(exact));
    }
    // A sum of n multiples of the quantum, of which each is at most 1, is exact.
    CHECK(static_cast<double>(n) / mass_quantum(n) <= 0x1p53);
    CHECK(mass_quantum(n) <= 0x1p-23);
  }
}

TEST_CASE("a row's parts cover it once, from logit 0, wherever the row lies in a batch") {
  for (const std::int32_t vocab : {1, 4095, 4096, 4097, 152064, 1 << 20, most_vocab}) {
    const std::int64_t parts = parts_of(vocab);
    for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, std::int64_t{70000}}) {
      std::int32_t next = 0;
      for (std::int64_t p = 0; p < parts; ++p) {
        const row_part part = part_of_team(row * parts + p, vocab);
        if (part.row != row || part.index != p || part.begin != next || part.len < 1) FAIL();
        next += part.len;
      }
      CHECK(next == vocab);
    }
  }
}

TEST_CASE("scratch of sampling lies apart, and holds rows times vocabulary beyond 2^31") {
  for (const bool logprobs : {false, true}) {
    const std::int64_t rows = 4096, vocab = 1 << 20, parts = rows * 256;
    const sample_layout at = sample_layout_of(rows, vocab, logprobs, 20);
    std::vector<std::pair<std::int64_t, std::int64_t>> arrays{
        {at.best, parts * 8},
        {at.fallbacks, parts * 8},
        {at.masses, parts * 8},
        {at.ties, parts * 4},
        {at.progress, rows * std::int64_t{sizeof(row_progress)}},
        {at.histograms, rows * histograms_of_row * std::int64_t{sizeof(row_histogram)}},
        {at.tops, logprobs ? parts * 20 * 8 : 0},
        {at.sums, logprobs ? parts * 8 : 0},
        {at.raw, logprobs ? rows * vocab * 4 : 0}};
    std::sort(arrays.begin(), arrays.end());
    std::int64_t end = 0;
    for (const auto& [begin, bytes] : arrays) {
      CHECK(begin >= end);
      CHECK(begin % 64 == 0);
      end = begin + bytes;
    }
    CHECK(at.bytes >= end);
    CHECK(at.bytes - end < 64);
  }
}
