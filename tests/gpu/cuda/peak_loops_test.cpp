// The loops that measure peak rates do all the multiply-adds and reads that are counted.
#include "gpu/cuda/peak_loops.hpp"

#include <numeric>
#include <vector>

#include "gpu/cuda/read_loop.hpp"

#include "tests/catch.hpp"
#include "tests/gpu/cuda/emulator.hpp"

using namespace twill::gpu;
using twill::test::emulated_ptx;

namespace {

constexpr int n_sums = 4 * cuda::peak_chains;

/// Runs the second of two blocks, and returns what each of its threads stores.
template <class Body>
std::vector<float> stored(cuda::peak_args args, const Body& body) {
  std::vector<float> out(2 * cuda::peak_threads, -1);
  args.out = out.data();
  twill::test::run_block(
      {.index = 1, .threads = cuda::peak_threads, .global = {{out.data(), out.size() * 4, true}}},
      [&](emulated_ptx ptx) {
        body(cuda::peak_loop<emulated_ptx>{ptx, args});
      });
  CHECK(out[cuda::peak_threads - 1] == -1); // the first block's outputs are untouched
  return {out.begin() + cuda::peak_threads, out.end()};
}

float sum_of_beginnings() {
  return static_cast<float>(n_sums * (n_sums - 1) / 2);
}

} // namespace

TEST_CASE("cuda peak rates: each round of mma adds sixteen products to each of a thread's sums") {
  const cuda::peak_args args{0x3c003c00U, 0, 0, 0, 5, nullptr}; // all factors are 1
  const auto sums = stored(args, [](auto loop) { loop.mma(); });
  for (const float sum : sums)
    CHECK(sum == sum_of_beginnings() + 5 * 16 * n_sums);
  // A multiply-add counts as two operations; a round of mma adds 16 products to each sum.
  CHECK(cuda::peak_mma_operations == 2 * 16 * n_sums);
}

TEST_CASE(
    "cuda peak rates: each round of mma of int8 adds 32 products to each of a thread's sums") {
  const cuda::peak_args args{0, 0x01010101U, 0, 0, 5, nullptr}; // all factors are 1
  const auto sums = stored(args, [](auto loop) { loop.mma_int8(); });
  for (const float sum : sums)
    CHECK(sum == sum_of_beginnings() + 5 * 32 * n_sums);
  CHECK(cuda::peak_int8_operations == 2 * 32 * n_sums);
}

TEST_CASE("cuda peak rates: each round of fma is one multiply-add of each of a thread's sums") {
  const cuda::peak_args args{0, 0, 2, 1, 3, nullptr}; // x becomes 8x + 7
  const auto sums = stored(args, [](auto loop) { loop.fma(); });
  for (const float sum : sums)
    CHECK(sum == 8 * sum_of_beginnings() + 7 * n_sums);
  CHECK(cuda::peak_fma_operations == 2 * n_sums);
}

TEST_CASE("cuda peak rates: the threads that read add up every word once") {
  constexpr int blocks = 2;
  // Pieces that do not divide among the threads; some threads have none.
  for (const std::int64_t pieces : {8 * 300, 8 * (3 * blocks * cuda::read_threads + 7)}) {
    std::vector<std::uint64_t> words(static_cast<std::size_t>(2 * pieces));
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = (i + 1) * 0x9e3779b97f4a7c15U;
    std::vector<std::uint64_t> sums(blocks * cuda::read_threads, 1);
    const cuda::read_args args{reinterpret_cast<const cuda::words4*>(words.data()), pieces, blocks,
                               sums.data()};
    for (int block = 0; block < blocks; ++block)
      twill::test::run_block({.index = block,
                              .threads = cuda::read_threads,
                              .global = {{words.data(), words.size() * 8, false},
                                         {sums.data(), sums.size() * 8, true}}},
                             [&](emulated_ptx ptx) {
                               cuda::read_loop<emulated_ptx>{ptx, args}.run();
                             });
    CHECK(std::accumulate(sums.begin(), sums.end(), std::uint64_t{0}) ==
          std::accumulate(words.begin(), words.end(), std::uint64_t{0}));
  }
}
