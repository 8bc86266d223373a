#include "tools/twill-bench/kernels/paper/marlin.hpp"

#include <algorithm>

#include "tools/twill-bench/kernels/paper/arithmetic.hpp"

namespace twill::bench::paper {

namespace {

struct shape {
  std::int64_t columns, outputs;
};
constexpr shape llama_13b[] = {{5120, 3 * 5120}, {5120, 5120}, {5120, 2 * 13568}, {13568, 5120}};

double bytes_of(std::int64_t rows, const shape& s) {
  return static_cast<double>(2 * rows * s.columns + s.columns * s.outputs / 2 +
                             2 * rows * s.outputs + 2 * s.outputs);
}

/// Marlin numbers the tiles of the weight matrix column by column, from the top to the bottom of
/// each column. Each thread block takes a stripe, which is `tiles_of_block` consecutive tiles.
/// Returns the largest number of stripes that have tiles in one column. Stripes that share a column
/// add their sums one after the other.
std::int64_t most_stripes(std::int64_t k_tiles, std::int64_t n_tiles, std::int64_t tiles_of_block) {
  std::int64_t most = 1;
  for (std::int64_t n = 0; n < n_tiles; ++n)
    most =
        std::max(most, ((n + 1) * k_tiles - 1) / tiles_of_block - n * k_tiles / tiles_of_block + 1);
  return most;
}

} // namespace

kernel_counts marlin_counts(const card& on, std::int64_t rows, std::int64_t columns,
                            std::int64_t outputs) {
  const shape s{columns, outputs};
  const std::int64_t k_tile = rows <= 16 ? 128 : 64, n_tile = rows <= 16 ? 128 : 256;
  const std::int64_t k_tiles = columns / k_tile, n_tiles = outputs / n_tile;
  const std::int64_t of_block = ceil_div(k_tiles * n_tiles, on.multiprocessors);
  const std::int64_t row_tiles = ceil_div(rows, 16);
  const auto weights = static_cast<double>(columns * outputs);
  const std::int64_t stripes = most_stripes(k_tiles, n_tiles, of_block);

  kernel_counts c;
  c.dram_bytes = bytes_of(rows, s);
  // Each tile reads its activations from L2. Partial sums are written and read in f16.
  c.l2_bytes = c.dram_bytes + static_cast<double>(k_tiles * n_tiles * rows * k_tile) * 2 +
               static_cast<double>(stripes - 1) * static_cast<double>(2 * 2 * rows * outputs);
  // The instructions with which a warp handles 16 x 64 weights: each of the 4 words of a lane is
  // shifted once and dequantised in 2 x 4 instructions; each tile of rows takes an ldmatrix and 8
  // mma; one load fetches the words. In a stage of the copy pipeline, a warp handles 16 x 64
  // weights twice and issues 12 further instructions for copies and their addresses, the wait, the
  // barrier and the loop.
  const double of_part = 4 * (1 + 2 * 4) + 9 * static_cast<double>(row_tiles) + 1 + 12.0 / 2;
  c.warp_instructions = weights / 1024 * of_part;
  c.mmas = weights * static_cast<double>(row_tiles) * 16 / (16.0 * 8 * 16);
  c.tensor_share = 0.45; // of Marlin's own plateau: 141 of 312 TFLOP/s from batch 64 on
  c.busiest =
      static_cast<double>(of_block * on.multiprocessors) / static_cast<double>(k_tiles * n_tiles);
  c.blocks = on.multiprocessors;
  c.warps_of_block = 8;
  // A block asks for 96 KB of shared memory.
  c.blocks_at_once = 1;
  c.bytes_in_flight = 2.5 * static_cast<double>(k_tile * n_tile) / 2; // two to three of four stages
  // The time at the end in which the thread blocks whose tiles share a column of tiles (see
  // most_stripes()) add up their sums. Each block waits for the one before, and its wait, read,
  // write, fence and release each take a round trip to L2. The sum within a block is assumed to
  // take 0.5 us.
  c.end_s = 0.5e-6 + static_cast<double>(stripes - 1) * 5 * on.l2_latency_s;
  return c;
}

double marlin_gb_per_s(const card& on, std::int64_t rows) {
  double bytes = 0, seconds = 0;
  for (const shape& s : llama_13b) {
    bytes += bytes_of(rows, s);
    seconds += predict(on, marlin_counts(on, rows, s.columns, s.outputs)).seconds;
  }
  return bytes / seconds / 1e9;
}

} // namespace twill::bench::paper
