#include "tests/catch.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/half.hpp"
#include "tests/gpu/cuda/emulator.hpp"

using namespace twill;
using test::block_shape;
using test::emulated_ptx;
using test::run_block;

namespace {

/// The words of the fault that a body ends with.
std::string fault_of(const block_shape& shape, const std::function<void(emulated_ptx)>& body) {
  try {
    run_block(shape, body);
  } catch (const test::fault& f) {
    return f.what();
  }
  return "no fault";
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return true;
}

std::uint32_t pair_of(float low, float high) {
  return gpu::detail::f32_to_f16(low) | static_cast<std::uint32_t>(gpu::detail::f32_to_f16(high))
                                            << 16;
}

/// The thread that holds each element of an 8 x 8 tile whose rows are spread over threads, as the
/// PTX ISA draws it for ldmatrix and for the quarters of mma's A, C and D. Each thread has two
/// neighbouring columns.
constexpr int holder_by_row[8][8] = {
    {0, 0, 1, 1, 2, 2, 3, 3},         {4, 4, 5, 5, 6, 6, 7, 7},
    {8, 8, 9, 9, 10, 10, 11, 11},     {12, 12, 13, 13, 14, 14, 15, 15},
    {16, 16, 17, 17, 18, 18, 19, 19}, {20, 20, 21, 21, 22, 22, 23, 23},
    {24, 24, 25, 25, 26, 26, 27, 27}, {28, 28, 29, 29, 30, 30, 31, 31}};
/// The same for the halves of mma's B, where a thread has two neighbouring rows.
constexpr int holder_by_column[8][8] = {
    {0, 4, 8, 12, 16, 20, 24, 28},  {0, 4, 8, 12, 16, 20, 24, 28},  {1, 5, 9, 13, 17, 21, 25, 29},
    {1, 5, 9, 13, 17, 21, 25, 29},  {2, 6, 10, 14, 18, 22, 26, 30}, {2, 6, 10, 14, 18, 22, 26, 30},
    {3, 7, 11, 15, 19, 23, 27, 31}, {3, 7, 11, 15, 19, 23, 27, 31}};

} // namespace

TEST_CASE("cuda emulator: ldmatrix gives each thread what the PTX ISA says") {
  for (const bool transposed : {false, true}) {
    std::uint32_t got[32][4];
    run_block({.shared_bytes = 4 * 8 * 16}, [&](emulated_ptx ptx) {
      const auto row = static_cast<unsigned>(ptx.thread()); // of all four matrices
      for (unsigned c = 0; c < 8; ++c) // element 8 * row + c differs everywhere
        ptx.store_shared(row * 16 + c * 2, static_cast<std::uint16_t>(row * 8 + c));
      ptx.barrier();
      if (transposed)
        ptx.load_matrices<true>(got[ptx.thread()], row * 16);
      else
        ptx.load_matrices<false>(got[ptx.thread()], row * 16);
    });
    for (unsigned matrix = 0; matrix < 4; ++matrix)
      for (unsigned r = 0; r < 8; ++r)
        for (unsigned c = 0; c < 8; ++c) {
          const int thread = transposed ? holder_by_row[c][r] : holder_by_row[r][c];
          const unsigned half = (transposed ? r : c) % 2;
          CAPTURE(transposed, matrix, r, c);
          REQUIRE((got[thread][matrix] >> (16 * half) & 0xffffU) == matrix * 64 + r * 8 + c);
        }
  }
}

TEST_CASE("cuda emulator: mma multiplies fragments as the PTX ISA lays them out") {
  float a[16][16], b[16][8], c[16][8];
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k)
      a[i][k] = static_cast<float>(3 * i - 5 * k + i * k % 7);
  for (int k = 0; k < 16; ++k)
    for (int j = 0; j < 8; ++j)
      b[k][j] = static_cast<float>(2 * k - 3 * j + k * j % 5);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j)
      c[i][j] = static_cast<float>(100 * i + j);
  std::uint32_t fa[32][4] = {}, fb[32][2] = {};
  float fd[32][4] = {};
  // Registers a0a1, a2a3, a4a5, a6a7 hold A's quarters: upper left, lower left, upper right, lower
  // right. b0b1 and b2b3 hold B's upper and lower half, c0c1 and c2c3 C's.
  for (int r = 0; r < 8; ++r)
    for (int q = 0; q < 8; q += 2) {
      const int thread = holder_by_row[r][q];
      fa[thread][0] = pair_of(a[r][q], a[r][q + 1]);
      fa[thread][1] = pair_of(a[r + 8][q], a[r + 8][q + 1]);
      fa[thread][2] = pair_of(a[r][q + 8], a[r][q + 9]);
      fa[thread][3] = pair_of(a[r + 8][q + 8], a[r + 8][q + 9]);
      for (int i = 0; i < 2; ++i) {
        fd[thread][i] = c[r][q + i];
        fd[thread][2 + i] = c[r + 8][q + i];
      }
    }
  for (int j = 0; j < 8; ++j)
    for (int k = 0; k < 8; k += 2) {
      const int thread = holder_by_column[k][j];
      fb[thread][0] = pair_of(b[k][j], b[k + 1][j]);
      fb[thread][1] = pair_of(b[k + 8][j], b[k + 9][j]);
    }
  run_block({}, [&](emulated_ptx ptx) {
    const int t = ptx.thread();
    ptx.mma_f16(fd[t], fa[t], fb[t]);
  });
  for (int r = 0; r < 16; ++r)
    for (int j = 0; j < 8; ++j) {
      float want = c[r][j];
      for (int k = 0; k < 16; ++k)
        want += a[r][k] * b[k][j];
      CAPTURE(r, j);
      REQUIRE(fd[holder_by_row[r % 8][j]][2 * (r / 8) + j % 2] == want);
    }
}

TEST_CASE("cuda emulator: shuffles and barriers let threads meet") {
  std::vector<float> sums(64);
  run_block({.threads = 64, .shared_bytes = 256}, [&](emulated_ptx ptx) {
    auto sum = static_cast<float>(ptx.thread());
    for (int mask = 1; mask < 32; mask *= 2)
      sum += ptx.shuffle_xor(sum, mask);
    ptx.store_shared(static_cast<unsigned>(4 * ptx.thread()), sum);
    ptx.barrier();
    sums[static_cast<std::size_t>(ptx.thread())] =
        ptx.load_shared<float>(static_cast<unsigned>(4 * (63 - ptx.thread())));
  });
  for (std::size_t t = 0; t < 64; ++t)
    CHECK(sums[t] == (t < 32 ? 1520.0f : 496.0f));
}

TEST_CASE("cuda emulator: an asynchronous copy lands at the wait that guarantees it") {
  alignas(16) float from[64];
  for (int i = 0; i < 64; ++i)
    from[i] = static_cast<float>(i);
  const block_shape shape{.shared_bytes = 1024, .global = {{from, sizeof from, false}}};
  const auto copy = [&](emulated_ptx ptx, int part) {
    if (ptx.thread() < 8)
      ptx.copy_async(static_cast<unsigned>(part * 128 + ptx.thread() * 16),
                     from + part * 32 + ptx.thread() * 4);
    ptx.commit();
  };
  float got[32];
  run_block(shape, [&](emulated_ptx ptx) {
    copy(ptx, 0);
    copy(ptx, 1);
    ptx.wait<1>();
    ptx.barrier();
    got[ptx.thread()] = ptx.load_shared<float>(static_cast<unsigned>(4 * ptx.thread()));
    ptx.wait<0>();
  });
  for (int t = 0; t < 32; ++t)
    CHECK(got[t] == static_cast<float>(t));
  has(fault_of(shape,
               [&](emulated_ptx ptx) {
                 copy(ptx, 0);
                 copy(ptx, 1);
                 ptx.wait<1>();
                 ptx.barrier();
                 ptx.load_shared<float>(static_cast<unsigned>(128 + 4 * ptx.thread()));
               }),
      "never written");
  has(fault_of(shape,
               [&](emulated_ptx ptx) {
                 copy(ptx, 0);
                 ptx.wait<0>();
                 ptx.load_shared<float>(static_cast<unsigned>(4 * ptx.thread()));
               }),
      "without a barrier");
  has(fault_of(shape, [&](emulated_ptx ptx) { copy(ptx, 0); }), "before its copies have landed");
}

TEST_CASE("cuda emulator: faults of a kernel are errors") {
  alignas(16) float memory[8] = {};
  const block_shape shape{.shared_bytes = 64, .global = {{memory, 16, false}}};
  const auto fails = [&](const char* words, const std::function<void(emulated_ptx)>& body) {
    has(fault_of(shape, body), words);
  };
  fails("never written", [](emulated_ptx ptx) { ptx.load_shared<float>(0); });
  fails("past the block's 64 bytes", [](emulated_ptx ptx) { ptx.store_shared(64, 1.0f); });
  fails("not aligned to 4", [](emulated_ptx ptx) { ptx.store_shared(2, 1.0f); });
  fails("outside what it was given", [&](emulated_ptx ptx) { ptx.load(memory + 4); });
  fails("writes global memory", [&](emulated_ptx ptx) { ptx.store(memory, 1.0f); });
  fails("not aligned to 16", [&](emulated_ptx ptx) {
    ptx.load(reinterpret_cast<const gpu::cuda::words4*>(memory + 1));
  });
  fails("writes shared byte 0 without a barrier",
        [](emulated_ptx ptx) { ptx.store_shared(0, 1.0f); });
  fails("different collectives", [](emulated_ptx ptx) {
    if (ptx.thread() == 3)
      ptx.barrier();
    else
      ptx.shuffle_xor(0, 1);
  });
  fails("different collectives", [](emulated_ptx ptx) {
    if (ptx.thread() != 3) ptx.barrier();
  });
}

TEST_CASE("cuda emulator: bank conflicts are counted") {
  const auto conflicts = [](unsigned stride) {
    return run_block({.shared_bytes = 32 * 128},
                     [&](emulated_ptx ptx) {
                       ptx.store_shared(static_cast<unsigned>(ptx.thread()) * stride, 1.0f);
                     })
        .bank_conflicts;
  };
  CHECK(conflicts(4) == 0);
  CHECK(conflicts(8) == 1);
  CHECK(conflicts(128) == 31);
  CHECK(conflicts(36) == 0);
}
