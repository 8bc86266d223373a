#include "tests/catch.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/half.hpp"
#include "tests/gpu/cuda/emulator.hpp"

using namespace twill;
using test::block_shape;
using test::emulated_ptx;
using test::grid_shape;
using test::run_block;
using test::run_grid;

namespace {

void run(const block_shape& shape, const std::function<void(emulated_ptx)>& body) {
  run_block(shape, body);
}
void run(const grid_shape& shape, const std::function<void(emulated_ptx)>& body) {
  run_grid(shape, body);
}

/// The words of the fault that a body ends with.
template <class Shape>
std::string fault_of(const Shape& shape, const std::function<void(emulated_ptx)>& body) {
  try {
    run(shape, body);
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

std::uint32_t pair_of(float low, float high, bool bf16 = false) {
  const auto narrow = bf16 ? gpu::detail::f32_to_bf16 : gpu::detail::f32_to_f16;
  return narrow(low) | static_cast<std::uint32_t>(narrow(high)) << 16;
}

/// Which thread of a warp holds each element of an 8 x 8 tile if a thread holds two neighbouring
/// columns of a row, as the PTX ISA shows it for ldmatrix and for the quarters of mma's A, C and D.
constexpr int holder_by_row[8][8] = {
    {0, 0, 1, 1, 2, 2, 3, 3},         {4, 4, 5, 5, 6, 6, 7, 7},
    {8, 8, 9, 9, 10, 10, 11, 11},     {12, 12, 13, 13, 14, 14, 15, 15},
    {16, 16, 17, 17, 18, 18, 19, 19}, {20, 20, 21, 21, 22, 22, 23, 23},
    {24, 24, 25, 25, 26, 26, 27, 27}, {28, 28, 29, 29, 30, 30, 31, 31}};
/// The thread that holds each element of a half of mma's B, with two neighbouring rows a thread.
constexpr int holder_by_column[8][8] = {
    {0, 4, 8, 12, 16, 20, 24, 28},  {0, 4, 8, 12, 16, 20, 24, 28},  {1, 5, 9, 13, 17, 21, 25, 29},
    {1, 5, 9, 13, 17, 21, 25, 29},  {2, 6, 10, 14, 18, 22, 26, 30}, {2, 6, 10, 14, 18, 22, 26, 30},
    {3, 7, 11, 15, 19, 23, 27, 31}, {3, 7, 11, 15, 19, 23, 27, 31}};

} // namespace

TEST_CASE("cuda emulator: ldmatrix gives each thread what the PTX ISA says") {
  for (const bool transposed : {false, true}) {
    std::uint32_t got[32][4];
    run_block({.shared_bytes = 4 * 8 * 16}, [&](emulated_ptx ptx) {
      const auto row = static_cast<unsigned>(ptx.thread()); // a row of one of the four matrices
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
  const bool bf16 = GENERATE(false, true);
  CAPTURE(bf16);
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
  // In the PTX ISA's names, registers a0a1, a2a3, a4a5 and a6a7 hold the quarters of A: upper left,
  // lower left, upper right, lower right. b0b1 and b2b3 hold the upper and lower half of B, and
  // c0c1 and c2c3 the upper and lower half of C.
  for (int r = 0; r < 8; ++r)
    for (int q = 0; q < 8; q += 2) {
      const int thread = holder_by_row[r][q];
      fa[thread][0] = pair_of(a[r][q], a[r][q + 1], bf16);
      fa[thread][1] = pair_of(a[r + 8][q], a[r + 8][q + 1], bf16);
      fa[thread][2] = pair_of(a[r][q + 8], a[r][q + 9], bf16);
      fa[thread][3] = pair_of(a[r + 8][q + 8], a[r + 8][q + 9], bf16);
      for (int i = 0; i < 2; ++i) {
        fd[thread][i] = c[r][q + i];
        fd[thread][2 + i] = c[r + 8][q + i];
      }
    }
  for (int j = 0; j < 8; ++j)
    for (int k = 0; k < 8; k += 2) {
      const int thread = holder_by_column[k][j];
      fb[thread][0] = pair_of(b[k][j], b[k + 1][j], bf16);
      fb[thread][1] = pair_of(b[k + 8][j], b[k + 9][j], bf16);
    }
  run_block({}, [&](emulated_ptx ptx) {
    const int t = ptx.thread();
    if (bf16)
      ptx.mma_bf16(fd[t], fa[t], fb[t]);
    else
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

TEST_CASE("cuda emulator: mma of integers multiplies fragments as the PTX ISA lays them out") {
  // The PTX ISA's m16n8k32: a thread's elements a0 to a15, b0 to b7 and c0 to c3.
  const auto row_of_a = [](int t, int i) { return t / 4 + (i < 4 || (i >= 8 && i < 12) ? 0 : 8); };
  const auto column_of_a = [](int t, int i) { return t % 4 * 4 + i % 4 + (i < 8 ? 0 : 16); };
  const auto row_of_b = [](int t, int i) { return t % 4 * 4 + i % 4 + (i < 4 ? 0 : 16); };
  // Both ends of the ranges, and a sum that wraps around.
  const auto a = [](int r, int k) { return k == 3 ? -128 : (r * 37 + k * 91) % 256 - 128; };
  const auto b = [](int k, int j) { return (k * 53 + j * 29) % 256 - 128; };
  const auto c = [](int r, int j) { return r == 5 ? 0x7fffff00 + j : 1000 * r - 70 * j; };
  std::int32_t got[32][4];
  run_block({}, [&](emulated_ptx ptx) {
    const int t = ptx.thread();
    std::uint32_t fa[4] = {}, fb[2] = {};
    std::int32_t fc[4];
    for (int i = 0; i < 16; ++i)
      fa[i / 4] |= (static_cast<std::uint32_t>(a(row_of_a(t, i), column_of_a(t, i))) & 255U)
                   << (8 * (i % 4));
    for (int i = 0; i < 8; ++i)
      fb[i / 4] |= (static_cast<std::uint32_t>(b(row_of_b(t, i), t / 4)) & 255U) << (8 * (i % 4));
    for (int i = 0; i < 4; ++i)
      fc[i] = c(t / 4 + (i < 2 ? 0 : 8), t % 4 * 2 + i % 2);
    ptx.mma_s8(got[t], fa, fb, fc);
  });
  for (int r = 0; r < 16; ++r)
    for (int j = 0; j < 8; ++j) {
      std::int64_t want = c(r, j);
      for (int k = 0; k < 32; ++k)
        want += std::int64_t{a(r, k)} * b(k, j);
      CAPTURE(r, j);
      REQUIRE(got[holder_by_row[r % 8][j]][2 * (r / 8) + j % 2] ==
              static_cast<std::int32_t>(static_cast<std::uint32_t>(want)));
    }
}

TEST_CASE("cuda emulator: lop3 is the function of its table") {
  // The PTX ISA makes a table of a function by applying it to 0xf0, 0xcc and 0xaa.
  const std::uint32_t a = 0x0f33aa55, b = 0x12345678, c = 0xfedcba98;
  run_block({}, [&](emulated_ptx ptx) {
    if (ptx.thread() != 0) return;
    CHECK(ptx.lop3<(0xf0 & 0xcc) | 0xaa>(a, b, c) == ((a & b) | c)); // 0xea: f16 from codes
    CHECK(ptx.lop3<0xf0 & (~0xcc & 0xff) & 0xaa>(a, b, c) == (a & ~b & c));
    CHECK(ptx.lop3<0xf0 ^ 0xcc ^ 0xaa>(a, b, c) == (a ^ b ^ c));
    CHECK(ptx.lop3<0xf0>(a, b, c) == a);
    CHECK(ptx.lop3<0xcc>(a, b, c) == b);
    CHECK(ptx.lop3<0xaa>(a, b, c) == c);
  });
}

TEST_CASE("cuda emulator: differences of two f16 round to nearest even") {
  run_block({}, [&](emulated_ptx ptx) {
    if (ptx.thread() != 0) return;
    CHECK(ptx.sub_f16x2(pair_of(1024 + 13, 3), pair_of(1024 + 8, -0.5f)) == pair_of(5, 3.5f));
    // 2048 has a unit in the last place of 2: ties go to the even neighbour.
    CHECK(ptx.sub_f16x2(pair_of(2048, 2048), pair_of(-1, -3)) == pair_of(2048, 2052));
    CHECK(ptx.sub_f16x2(0x0001, 0x0002) == 0x8001); // subnormal
    CHECK(ptx.sub_f16x2(pair_of(65504, 0), pair_of(-65504, 0)) == 0x7c00);
  });
}

TEST_CASE("cuda emulator: memory that the grid may write is not constant") {
  alignas(16) std::uint32_t memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto* words = reinterpret_cast<const gpu::cuda::words4*>(memory);
  run_block({.global = {{memory, 32, false}}},
            [&](emulated_ptx ptx) { CHECK(ptx.load_constant(words + 1).word[2] == 7); });
  has(fault_of(block_shape{.global = {{memory, 32, false}, {memory + 7, 4, true}}},
               [&](emulated_ptx ptx) { ptx.load_constant(words + 1); }),
      "load_constant() reads memory that the grid may write");
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

TEST_CASE("cuda emulator: an asynchronous copy of zeros reads nothing and lands as others do") {
  alignas(16) const unsigned char from[16] = {1, 2, 3};
  const auto body = [&](bool zeros, bool waits) {
    return [&from, zeros, waits](emulated_ptx ptx) {
      const auto offset = static_cast<unsigned>(ptx.thread()) * 16;
      ptx.copy_async_or_zeros(offset, zeros ? nullptr : from, zeros);
      ptx.commit();
      if (waits) ptx.wait<0>();
      const int found = ptx.load_shared<unsigned char>(offset + 1);
      if (found != (zeros ? 0 : 2)) throw test::fault("another byte");
      ptx.wait<0>();
    };
  };
  const block_shape shape{.shared_bytes = 32 * 16, .global = {{from, sizeof from, false}}};
  for (const bool zeros : {false, true}) {
    CAPTURE(zeros);
    has(fault_of(shape, body(zeros, true)), "no fault");
    has(fault_of(shape, body(zeros, false)), "which was never written");
  }
  has(fault_of(block_shape{.shared_bytes = 8},
               [](emulated_ptx ptx) { ptx.copy_async_or_zeros(0, nullptr, true); }),
      "past the block's");
  has(fault_of(block_shape{.shared_bytes = 64},
               [](emulated_ptx ptx) { ptx.copy_async_or_zeros(8, nullptr, true); }),
      "is not aligned");
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

TEST_CASE("cuda emulator: sync_warp orders a warp's accesses to shared memory, and no other's") {
  const block_shape two_warps{.threads = 64, .shared_bytes = 256};
  const auto exchange = [](emulated_ptx ptx, bool after_write, bool after_read, int partner) {
    const int t = ptx.thread();
    const auto own = static_cast<unsigned>(4 * t), other = static_cast<unsigned>(4 * (t ^ partner));
    ptx.store_shared(own, t);
    if (after_write) ptx.sync_warp();
    if (ptx.load_shared<int>(other) != (t ^ partner)) throw test::fault("another value");
    if (after_read) ptx.sync_warp();
    ptx.store_shared(own, t + 1);
    ptx.barrier();
    if (ptx.load_shared<int>(other) != (t ^ partner) + 1) throw test::fault("another value");
  };
  const auto fault = [&](bool after_write, bool after_read, int partner) {
    return fault_of(two_warps,
                    [&](emulated_ptx ptx) { exchange(ptx, after_write, after_read, partner); });
  };
  CHECK(fault(true, true, 1) == "no fault");
  has(fault(false, true, 1), "thread 0 reads shared byte 4, which was never written");
  has(fault(true, false, 1), "without a barrier after thread"); // a later write races with the read
  has(fault_of(two_warps,
               [](emulated_ptx ptx) {
                 ptx.store_shared(static_cast<unsigned>(4 * ptx.thread()), 1);
                 ptx.sync_warp();
                 if (ptx.thread() == 5) ptx.load_shared<int>(24);
                 if (ptx.thread() == 6) ptx.store_shared(24, 2);
                 ptx.barrier();
               }),
      "without a barrier after another thread touched it");
  has(fault(true, true, 32), "without a barrier after thread"); // the partner is in another warp
}

TEST_CASE("cuda emulator: arithmetic on pairs of 16 bits rounds once, to nearest even") {
  std::vector<std::string> wrong;
  run_block({}, [&](emulated_ptx ptx) {
    if (ptx.thread() != 0) return;
    const auto same = [&](const char* what, std::uint32_t got, std::uint32_t want) {
      if (got != want) wrong.push_back(what);
    };
    same("bf16", ptx.fma_bf16x2(pair_of(3, -2, true), pair_of(5, 7, true), pair_of(1, 0.5F, true)),
         pair_of(16, -13.5F, true));
    // The exact sum lies just below the middle of two bf16; a rounded product would reach it.
    same("once",
         ptx.fma_bf16x2(pair_of(0x1p-8F * (1 + 0x1p-7F), 0x1p-8F, true),
                        pair_of(1 - 0x1p-7F, 1, true), pair_of(1 + 0x1p-7F, 1, true)),
         pair_of(1 + 0x1p-7F, 1, true));
    // The first argument becomes the lower half. Ties are rounded to even.
    same("narrow f16", ptx.narrow_f16x2(1.5F, -2), 0xc0003e00U);
    same("narrow f16", ptx.narrow_f16x2(2049, 2051), pair_of(2048, 2052));
    same("narrow bf16", ptx.narrow_bf16x2(1.5F, -2), 0xc0003fc0U);
    same("narrow bf16", ptx.narrow_bf16x2(257, 259), pair_of(256, 260, true));
    // x * x is rounded before the addition, unlike in a multiply-add.
    const float x = 1 + 0x1p-12F;
    same("add", gpu::detail::f32_to_bits(ptx.add(x * x, -1)), gpu::detail::f32_to_bits(0x1p-11F));
    same("permute", ptx.permute(0x33221100U, 0x77665544U, 0x5410), 0x55441100U);
    same("permute", ptx.permute(0x33221100U, 0x77665544U, 0x7632), 0x77663322U);
    same("permute", ptx.permute(0x33221100U, 0, 0x4242), 0x00220022U);
  });
  CHECK(wrong == std::vector<std::string>{});
  has(fault_of(block_shape{}, [](emulated_ptx ptx) { ptx.permute(0, 0, 0x8000); }), "must be 0");
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
  // ldmatrix takes the eight rows of a matrix at once.
  const auto of_matrices = [](unsigned stride) {
    return run_block({.shared_bytes = 32 * 128},
                     [&](emulated_ptx ptx) {
                       const auto at = static_cast<unsigned>(ptx.thread());
                       for (unsigned i = 0; i < 128; i += 4)
                         ptx.store_shared(4 * at + 32 * i, 1.0f);
                       ptx.sync_warp();
                       std::uint32_t rows[4];
                       ptx.load_matrices<false>(rows, at * stride);
                     })
        .bank_conflicts;
  };
  CHECK(of_matrices(16) == 0);
  CHECK(of_matrices(32) == 4);
  CHECK(of_matrices(128) == 28);
  CHECK(of_matrices(80) == 0);
}

namespace {

/// The step that the blocks of sliced_sum leave out.
enum class omits { nothing, fence, atomic, fence_after, barrier };

/// A grid of 4 blocks of 32 threads. Each block doubles one slice of x (32 numbers). The block that
/// finishes last adds up the doubled slices, element by element and in their order.
struct sliced_sum {
  static constexpr int slices = 4;
  std::vector<float> x, parts, out;
  std::int32_t finished = 0;

  sliced_sum() : x(32 * slices), parts(32 * slices), out(32) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = 1.0f / static_cast<float>(i + 3);
  }
  grid_shape shape(std::uint32_t seed) {
    return {.blocks = slices,
            .seed = seed,
            .block = {.threads = 32,
                      .shared_bytes = 4,
                      .global = {{x.data(), x.size() * 4, false},
                                 {parts.data(), parts.size() * 4, true},
                                 {out.data(), out.size() * 4, true},
                                 {&finished, 4, true}}}};
  }
  void body(emulated_ptx ptx, omits omitted) {
    const int t = ptx.thread();
    ptx.store(&parts[static_cast<std::size_t>(32 * ptx.block() + t)],
              2 * ptx.load(&x[static_cast<std::size_t>(32 * ptx.block() + t)]));
    if (omitted != omits::barrier) ptx.barrier();
    if (t == 0) {
      if (omitted != omits::fence) ptx.fence();
      std::int32_t before = slices - 1;
      if (omitted != omits::atomic) before = ptx.atomic_add(&finished, 1);
      if (omitted != omits::fence_after) ptx.fence();
      ptx.store_shared(0, before);
    }
    ptx.barrier();
    if (ptx.load_shared<std::int32_t>(0) != slices - 1) return;
    float sum = 0;
    for (int slice = 0; slice < slices; ++slice)
      sum += ptx.load_l2(&parts[static_cast<std::size_t>(32 * slice + t)]);
    ptx.store(&out[static_cast<std::size_t>(t)], sum);
  }
};

} // namespace

TEST_CASE("cuda emulator: blocks that meet at a counter sum the slices of a product") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    sliced_sum sum;
    run_grid(sum.shape(seed), [&](emulated_ptx ptx) { sum.body(ptx, omits::nothing); });
    CHECK(sum.finished == sliced_sum::slices);
    for (std::size_t t = 0; t < 32; ++t) {
      float want = 0;
      for (std::size_t slice = 0; slice < sliced_sum::slices; ++slice)
        want += 2 * sum.x[32 * slice + t];
      REQUIRE(sum.out[t] == want);
    }
  }
}

TEST_CASE("cuda emulator: blocks that meet without a fence, an atomic or a barrier are a fault") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    for (const omits omitted : {omits::fence, omits::atomic, omits::fence_after, omits::barrier}) {
      CAPTURE(static_cast<int>(omitted));
      sliced_sum sum;
      has(fault_of(sum.shape(seed), [&](emulated_ptx ptx) { sum.body(ptx, omitted); }),
          "without a fence and an atomic in between");
    }
  }
}

TEST_CASE("cuda emulator: the turns of blocks depend on the seed alone") {
  const auto order_of = [](std::uint32_t seed) {
    std::int32_t next = 0;
    std::vector<std::int32_t> order(8);
    run_grid({.blocks = 8, .seed = seed, .block = {.global = {{&next, 4, true}}}},
             [&](emulated_ptx ptx) {
               if (ptx.thread() == 0)
                 order[static_cast<std::size_t>(ptx.block())] = ptx.atomic_add(&next, 1);
             });
    return order;
  };
  CHECK(order_of(1) == order_of(1));
  CHECK(order_of(1) != order_of(2));
}

TEST_CASE("cuda emulator: races on global memory are faults") {
  alignas(16) float memory[64] = {};
  std::int32_t counter = 0;
  const grid_shape shape{.blocks = 2,
                         .block = {.global = {{memory, sizeof memory, true}, {&counter, 4, true}}}};
  const auto fails = [&](const char* words, const std::function<void(emulated_ptx)>& body) {
    has(fault_of(shape, body), words);
  };
  fails("writes a byte of global memory that thread 3", [&](emulated_ptx ptx) {
    if (ptx.thread() == 3) ptx.store(memory, 1.0f);
  });
  int write_first = 0, read_first = 0;
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    grid_shape other = shape;
    other.seed = seed;
    const std::string fault = fault_of(other, [&](emulated_ptx ptx) {
      if (ptx.thread() != 3) return;
      if (ptx.block() == 0) ptx.store(memory, 1.0f);
      if (ptx.block() == 1) ptx.load(memory);
    });
    write_first += fault.find("of block 0 wrote, without a fence") != std::string::npos;
    read_first += fault.find("of block 1 read, without a fence") != std::string::npos;
  }
  CHECK(write_first > 0);
  CHECK(read_first > 0);
  CHECK(write_first + read_first == 10);
  fails("without a barrier in between", [&](emulated_ptx ptx) {
    ptx.store(memory + 32 * ptx.block() + ptx.thread(), 1.0f);
    ptx.load(memory + 32 * ptx.block() + (ptx.thread() ^ 1));
  });
  fails("accesses a counter of atomics otherwise", [&](emulated_ptx ptx) {
    if (ptx.thread() != 0 || ptx.block() != 0) return;
    ptx.atomic_add(&counter, 1);
    ptx.load(&counter);
  });
  fails("atomic on what is accessed otherwise", [&](emulated_ptx ptx) {
    if (ptx.thread() != 0 || ptx.block() != 0) return;
    ptx.store(&counter, 0);
    ptx.atomic_add(&counter, 1);
  });
  std::int32_t foreign = 0;
  fails("a counter lies outside", [&](emulated_ptx ptx) { ptx.atomic_add(&foreign, 1); });
  fails("a counter is not aligned", [&](emulated_ptx ptx) {
    ptx.atomic_add(reinterpret_cast<std::int32_t*>(reinterpret_cast<char*>(memory) + 2), 1);
  });
}

namespace {

/// The products of a (16, 16 * steps) matrix of weights with 8 rows of activations: 128 sums. All
/// but the first `rows` rows of activations are zero. The 16 columns of each step are added in
/// `order`.
std::vector<float> products_of(const std::vector<int>& order, int rows, bool order_records) {
  std::vector<float> sums(32 * 4);
  run_block({.order_records = order_records}, [&](emulated_ptx ptx) {
    const int t = ptx.thread();
    const auto weight = [](int row, int k) { return static_cast<float>(row * 7 + k * 3 % 41); };
    const auto activation = [&](int row, int k) {
      return row < rows ? static_cast<float>(row * 5 + k % 37 + 1) : 0.0f;
    };
    float d[4] = {};
    for (const int step : order) {
      std::uint32_t a[4], b[2];
      for (int i = 0; i < 4; ++i) {
        const int row = t / 4 + 8 * (i % 2), k = 16 * step + 2 * (t % 4) + 8 * (i / 2);
        a[i] = pair_of(weight(row, k), weight(row, k + 1));
      }
      for (int i = 0; i < 2; ++i) {
        const int k = 16 * step + 2 * (t % 4) + 8 * i;
        b[i] = pair_of(activation(t / 4, k), activation(t / 4, k + 1));
      }
      ptx.mma_f16(d, a, b);
    }
    for (int i = 0; i < 4; ++i)
      sums[static_cast<std::size_t>(4 * t + i)] = d[i];
  });
  return sums;
}

} // namespace

TEST_CASE("cuda emulator: a record of order distinguishes sums of the same products") {
  const std::vector<int> up{0, 1, 2, 3}, down{3, 2, 1, 0};
  CHECK(products_of(up, 8, false) == products_of(down, 8, false)); // small integers are exact
  const auto records = products_of(up, 8, true);
  CHECK(records == products_of(up, 8, true));
  const auto others = products_of(down, 8, true);
  for (std::size_t i = 0; i < records.size(); ++i) {
    CAPTURE(i);
    CHECK(records[i] != others[i]);
    CHECK(std::isfinite(records[i]));
  }
}

TEST_CASE("cuda emulator: a record of order is a row's, with any rows beside it") {
  const std::vector<int> order{2, 0, 1};
  const auto one = products_of(order, 1, true);
  const auto eight = products_of(order, 8, true);
  const auto sums = products_of(order, 1, false);
  int rows = 0;
  for (std::size_t t = 0; t < 32; ++t)
    for (std::size_t i = 0; i < 4; ++i) {
      const bool first_row = 2 * (t % 4) + i % 2 == 0;
      rows += first_row;
      CHECK((one[4 * t + i] == eight[4 * t + i]) == first_row);
      if (!first_row) CHECK(one[4 * t + i] == 0); // the other rows' products are zero
      if (!first_row) CHECK(sums[4 * t + i] == 0);
    }
  CHECK(rows == 16);
}

TEST_CASE("cuda emulator: a record of order does not depend on the factors of products of zero") {
  const auto record = [](float first, float beside_zero) {
    float sum = 0;
    run_block({.order_records = true}, [&](emulated_ptx ptx) {
      float d[4] = {};
      const std::uint32_t a = pair_of(first, 0), b = pair_of(3, beside_zero);
      ptx.mma_f16(d, {a, a, a, a}, {b, b});
      if (ptx.thread() == 0) sum = d[0];
    });
    return sum;
  };
  CHECK(record(2, 5) == record(2, 7));
  CHECK(record(2, 5) != record(4, 5));
  CHECK(record(0, 5) == 0);
}

TEST_CASE("cuda emulator: a record of order shows how a body adds its sums") {
  // The masks of the two shuffles decide in which order the same numbers are added.
  const auto record = [](int first_mask, int second_mask) {
    std::vector<float> sums(32);
    run_block({.order_records = true}, [&](emulated_ptx ptx) {
      const int t = ptx.thread();
      float d[4] = {};
      const std::uint32_t one = pair_of(1, 1), own = pair_of(static_cast<float>(t + 1), 2);
      ptx.mma_f16(d, {own, own, own, own}, {one, own});
      d[0] += ptx.shuffle_xor(d[0], first_mask);
      d[0] += ptx.shuffle_xor(d[0], second_mask);
      sums[static_cast<std::size_t>(t)] = d[0];
    });
    return sums;
  };
  CHECK(record(1, 2) == record(1, 2));
  CHECK(record(1, 2) != record(2, 1));
}
