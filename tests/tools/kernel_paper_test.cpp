#include <cmath>
#include <span>

#include "tests/catch.hpp"
#include "tools/twill-bench/kernels/paper/counts.hpp"
#include "tools/twill-bench/kernels/paper/decode_step.hpp"
#include "tools/twill-bench/kernels/paper/marlin.hpp"
#include "tools/twill-bench/kernels/paper/serving.hpp"
#include "tools/twill-bench/kernels/paper/targets.hpp"

using namespace twill::bench;
using namespace twill::bench::paper;

namespace {

/// A GPU with round figures, so that times can be calculated by hand.
constexpr card round_card{.name = "round",
                          .multiprocessors = 10,
                          .clock_hz = 1e9,
                          .dram_bytes_per_s = 1000e9,
                          .read_share = 0.5,
                          .l2_bytes_per_s = 2000e9,
                          .dram_latency_s = 1e-6,
                          .l2_latency_s = 0.2e-6,
                          .tensor_fma_per_s = 10e12,
                          .mma_share = 1,
                          .shared_bytes = 100 * 1024,
                          .threads = 2048,
                          .launch_s = 2e-6};

kernel_counts blocks_of_8_warps(std::int64_t blocks, int at_once) {
  kernel_counts c;
  c.blocks = blocks;
  c.warps_of_block = 8;
  c.blocks_at_once = at_once;
  return c;
}

double us(const kernel_counts& c) {
  return predict(round_card, c).seconds * 1e6;
}

constexpr double rounding = 1e-12; ///< error of sums that are added in another order

std::span<const seed_layer> seeds() {
  return {seed_layers, n_paper_seeds};
}

} // namespace

TEST_CASE("a kernel that reads takes its bytes over what a reading kernel reaches") {
  kernel_counts c = blocks_of_8_warps(20, 2);
  c.dram_bytes = 5e6;
  const predicted p = predict(round_card, c);
  CHECK(p.seconds * 1e6 == Approx(2 + 1 + 10)); // launch, first load, 5 MB at 500 GB/s
  CHECK(p.by == bound::dram);
  CHECK(p.dram_share == Approx(5e6 / 13e-6 / 1000e9));
  CHECK(p.waves == Approx(1));
  CHECK(p.wave_loss == 0);
}

TEST_CASE("blocks that share DRAM leave it to each other in the last wave") {
  kernel_counts c = blocks_of_8_warps(21, 2); // one more than fit at once
  c.dram_bytes = 21e6;
  CHECK(us(c) == Approx(2 + 1 + 42)); // 21 MB at 500 GB/s, the last block's megabyte included
  CHECK(predict(round_card, c).wave_loss < rounding);
}

TEST_CASE("instructions of the last wave take as long with fewer blocks, and fill fewer slots") {
  kernel_counts c = blocks_of_8_warps(30, 2);
  c.warp_instructions = 30 * 32e3;
  const predicted p = predict(round_card, c);
  // Two blocks' 16 warps issue at the limit of 80 %. One block's 8 warps fill half the slots.
  const double first = 2 * 32e3 / (4 * 0.8 * 1e3), last = 32e3 / (4 * 0.5 * 1e3);
  CHECK(p.seconds * 1e6 == Approx(2 + 1 + first + last));
  CHECK(p.by == bound::issue);
  CHECK(p.waves == Approx(1.5));
  const double even = 3 * 32e3 / (4 * 0.8 * 1e3);
  CHECK(p.wave_loss == Approx((first + last - even) / (3 + first + last)));
}

TEST_CASE("tensor cores, L2, a port and latency bound a kernel by their own rates") {
  kernel_counts tensor = blocks_of_8_warps(10, 2);
  tensor.mmas = 10 * 1000; // 1,000 of 2,048 FMA a multiprocessor, at 1 FMA a picosecond
  CHECK(us(tensor) == Approx(3 + 2.048));
  tensor.tensor_share = 0.5;
  CHECK(us(tensor) == Approx(3 + 4.096));
  CHECK(predict(round_card, tensor).by == bound::tensor);

  kernel_counts l2 = blocks_of_8_warps(10, 2);
  l2.l2_bytes = 20e6; // 2 MB a multiprocessor at 64 GB/s; all 20 MB at 2 TB/s are faster
  CHECK(us(l2) == Approx(3 + 31.25));
  CHECK(predict(round_card, l2).by == bound::l2);

  kernel_counts latency = blocks_of_8_warps(1, 2);
  latency.dram_bytes = 1e6;
  latency.bytes_in_flight = 10e3;
  CHECK(us(latency) == Approx(3 + 100 * loaded_latency));
  CHECK(predict(round_card, latency).by == bound::latency);

  latency.bytes_in_flight = 0;
  latency.first_loads = 5;
  CHECK(us(latency) == Approx(2 + 5 + 2));
  CHECK(predict(round_card, latency).by == bound::fixed);
}

TEST_CASE("one block at a time pays for its first load and its end in every wave") {
  kernel_counts c = blocks_of_8_warps(30, 1);
  c.end_s = 0.5e-6;
  CHECK(us(c) == Approx(2 + 3 * 1.5));
  c.blocks_at_once = 2;
  CHECK(us(c) == Approx(2 + 1.5));
}

TEST_CASE("registers, threads and shared memory say how many blocks fit") {
  CHECK(blocks_at_once(round_card, 256, 96, 48 * 1024) == 2);
  CHECK(blocks_at_once(round_card, 256, 96, 0) == 2);  // 24,576 of 65,536 registers
  CHECK(blocks_at_once(round_card, 256, 80, 0) == 3);  // 20,480
  CHECK(blocks_at_once(round_card, 256, 128, 0) == 2); // 32,768
  CHECK(blocks_at_once(round_card, 256, 32, 0) == 8);  // 2,048 threads
  CHECK(blocks_at_once(round_card, 256, 32, 24 * 1024) == 4);
  CHECK(blocks_at_once(round_card, 256, 255, 99 * 1024) == 1);
}

TEST_CASE("Marlin's own counts give its published speed on an A100 within 15 %") {
  for (const marlin_figure& f : marlin_published) {
    const double gb_per_s = marlin_gb_per_s(card_of("A100-40G"), f.rows);
    INFO(f.rows << " rows: " << gb_per_s << " GB/s");
    CHECK(std::abs(gb_per_s / f.published_gb_per_s - 1) < 0.15);
  }
}

TEST_CASE("a prompt's product counts whole blocks, and each operand as often as blocks read it") {
  const card& a100 = card_of("A100-40G");
  // 5 blocks of 64 rows (the last has 1 row) by 17 blocks of 256 outputs (the last has 4).
  const kernel_counts c = prefill_counts(a100, 257, 4096, 4100, {4, 128}, false);
  const double weights = 4096.0 * 4100 / 2 + 4096.0 * 4100 / 128 * 3;
  const double x = 257 * 4096 * 2, out = 257 * 4100 * 4;
  CHECK(c.blocks == 5 * 17);
  CHECK(c.dram_bytes == weights + x + out);
  CHECK(c.l2_bytes == 5 * weights + 17 * x + out);
  CHECK(c.mmas == 5.0 * 64 * 17 * 256 * 4096 / 2048);
  CHECK(c.warp_instructions == Approx(c.mmas * 4.3));
  CHECK(prefill_counts(a100, 257, 4096, 4100, {16, 0}, false).blocks == 3 * 33);
  // silu_mul() of the product has half as many outputs, of 2 bytes instead of 4.
  CHECK(prefill_counts(a100, 257, 4096, 4100, {4, 128}, true).dram_bytes == weights + x + out / 4);
  // With int8, an mma takes twice as many columns, and activations take half the bytes.
  const kernel_counts i8 = prefill_counts(a100, 257, 4096, 4100, {8, 128, true}, false);
  CHECK(i8.mmas == 6.0 * 48 * 17 * 256 * 4096 / 4096);
  CHECK(i8.dram_bytes == 4096.0 * 4100 + 4096.0 * 4100 / 128 * 2 + x / 2 + out);
  // A group size without a plan takes the plan of the next smaller size.
  CHECK(prefill_counts(a100, 257, 4096, 4100, {8, 96}, false).warp_instructions ==
        prefill_counts(a100, 257, 4096, 4100, {8, 64}, false).warp_instructions);
}

TEST_CASE("a product counts its weights, its blocks and their activations") {
  const card& a100 = card_of("A100-40G");
  const kernel_counts c = gemm_counts(a100, 1, 4096, 6144, {4, 128});
  CHECK(c.dram_bytes == 4096.0 * 6144 / 2 + 4096.0 * 6144 / 128 * 3);
  CHECK(c.blocks == 192);
  CHECK(c.l2_bytes == c.dram_bytes + 192.0 * 4096 * 2 + 6144 * 4);
  CHECK(c.warp_instructions == Approx(4096.0 * 6144 * plan_of({4, 128}).instructions[0] / 32));
  CHECK(c.mmas == 4096.0 * 6144 / 256); // 16 x 16 weights
  CHECK(c.busiest == 1);                // 32 groups, 4 a slice

  const kernel_counts bytes = gemm_counts(a100, 1, 4096, 6144, {8, 16});
  CHECK(bytes.dram_bytes == 4096.0 * 6144 + 4096.0 * 6144 / 16 * 4);
  CHECK(bytes.mmas == c.mmas);
  CHECK(bytes.blocks == c.blocks);

  const kernel_counts many = gemm_counts(a100, 64, 4096, 6144, {16, 0});
  CHECK(many.dram_bytes == 2 * 4096.0 * 6144);
  CHECK(many.blocks == 2 * 192); // two times 32 rows
  CHECK(many.mmas == 8 * c.mmas);
  CHECK(many.l2_bytes > 2 * many.dram_bytes);
  // From 16,384 outputs on, blocks of 32 rows have two pairs of panels.
  CHECK(gemm_counts(a100, 32, 4096, 16384, {16, 0}).blocks == 256);
  CHECK(gemm_counts(a100, 16, 4096, 16384, {16, 0}).blocks == 512);
  // 107 groups are 14 for each of seven slices, and 9 for the eighth.
  CHECK(gemm_counts(a100, 1, 13696, 5120, {4, 128}).busiest == Approx(14 * 8 / 107.0));
}

TEST_CASE("groups take the plan that costs at least as much") {
  CHECK(plan_of({16, 0}).weights.bits == 16);
  const auto group = [](int bits, std::int32_t of) { return plan_of({bits, of}).weights.group; };
  CHECK(group(4, 128) == 128);
  CHECK(group(4, 256) == 128);
  CHECK(group(4, 64) == 64);
  CHECK(group(4, 96) == 64);
  CHECK(group(4, 32) == 32);
  CHECK(group(4, 16) == 32);
  CHECK(group(8, 128) == 64);
  CHECK(group(8, 48) == 32);
  CHECK(group(8, 16) == 16);
  CHECK(plan_of({8, 32}).weights.bits == 8);
}

TEST_CASE("attention counts KV once and a block for 256 positions") {
  const kernel_counts c = attention_counts(card_of("A6000"), {32, 8, 128}, 2, 513);
  CHECK(c.blocks == 2 * 8 * 3);
  CHECK(c.dram_bytes == 2.0 * 513 * 8 * 128 * 4);
  CHECK(combine_of_step(seed_layers[0], 256).launches == 0);
  CHECK(combine_of_step(seed_layers[0], 257).launches == seed_layers[0].n_layers);
}

TEST_CASE("more bandwidth is never slower, more rows and positions are never faster") {
  for (const card& on : cards()) {
    card wider = on;
    wider.dram_bytes_per_s *= 1.3;
    for (const seed_layer& seed : seeds()) {
      for (const product_shape& product : seed.products())
        for (const weight_format format :
             {weight_format{16, 0}, weight_format{4, 32}, weight_format{4, 128},
              weight_format{8, 16}, weight_format{8, 32}, weight_format{8, 64}}) {
          step_kernel before;
          for (std::int64_t rows = 1; rows <= 64; ++rows) {
            INFO(on.name << ", " << seed.name << " " << product.name << ", " << format.bits
                         << " bits/" << format.group << ", " << rows);
            const step_kernel k = product_of_step(on, seed, product, rows, format);
            // A row more may change the shape of blocks, and the last wave may then be fuller.
            const bool same_shape = rows != gemm_rows[0] + 1 && rows != gemm_rows[1] + 1;
            if (same_shape) CHECK(k.one.seconds >= before.one.seconds * (1 - rounding));
            CHECK(k.dram_bytes >= before.dram_bytes);
            CHECK(product_of_step(wider, seed, product, rows, format).one.seconds <=
                  k.one.seconds * (1 + rounding));
            CHECK(k.one.wave_loss >= 0);
            CHECK(k.one.wave_loss < 1);
            CHECK(k.one.dram_share < on.read_share);
            before = k;
          }
        }
      step_kernel before;
      for (std::int64_t positions = 1; positions <= 2048; positions += 89) {
        INFO(on.name << ", " << seed.name << ", " << positions);
        const step_kernel k = attention_of_step(on, seed, 1, positions);
        CHECK(k.dram_bytes > before.dram_bytes);
        CHECK(attention_of_step(on, seed, 2, positions).one.seconds >=
              k.one.seconds * (1 - rounding));
        CHECK(attention_of_step(wider, seed, 1, positions).one.seconds <=
              k.one.seconds * (1 + rounding));
        before = k;
      }
    }
  }
}

TEST_CASE("a step has the launches of its layers, and waits for the host where they are short") {
  const seed_layer& seed = seed_layers[0];
  const decode_step step = step_of(card_of("H100"), seed, 1, 512);
  CHECK(step.launches() == 10 * seed.n_layers + 5);
  CHECK(step.step_s() >= step.gpu_s());
  CHECK(step.step_s() >= static_cast<double>(step.launches()) * host_launch_s);
  double bytes = 0;
  for (const step_kernel& k : step.kernels)
    bytes += static_cast<double>(k.launches) * k.dram_bytes;
  CHECK(step.gpu_s() > bytes / card_of("H100").read_bytes_per_s());
}

TEST_CASE("a mark is met from its figure on, or up to it") {
  CHECK(target{.figure = 0.7, .wanted = 0.7}.met());
  CHECK_FALSE(target{.figure = 0.69, .wanted = 0.7}.met());
  CHECK(target{.figure = 0.1, .wanted = 0.1, .at_most = true}.met());
  CHECK_FALSE(target{.figure = 0.11, .wanted = 0.1, .at_most = true}.met());
  for (const card& on : cards())
    for (const target& t : targets_of(on)) {
      INFO(on.name << ": " << t.what << ", " << t.where);
      CHECK(std::isfinite(t.figure));
      CHECK(t.figure >= 0);
      CHECK(t.wanted > 0);
    }
}

TEST_CASE("a published cell gives the requests under way and the mean output") {
  const request_load load = load_of(512, 1.59, 812.33, 13.55);
  CHECK(load.input == 512);
  CHECK(load.output == Approx(510.9).epsilon(0.001));
  CHECK(load.concurrency == Approx(11.0).epsilon(0.001)); // 812.33 tokens/s of 13.55 ms each
}

TEST_CASE("a server's requests pay for their prompts, and share their decode steps") {
  const card& a100 = card_of("A100-40G");
  const seed_layer& mistral = seed_layers[0];
  const served s = serve(a100, mistral, {512, 100, 8});
  CHECK(s.step_s == Approx(step_of(a100, mistral, 8, 562).step_s()));
  CHECK(s.prompt_s == Approx(prompt_step_of(a100, mistral, 512).step_s()));
  CHECK(s.tokens_per_s == Approx(100 / (s.prompt_s + 100 * s.step_s / 8)));
  // A mean of less than one request under way counts as one.
  CHECK(serve(a100, mistral, {512, 100, 0.3}).step_s == serve(a100, mistral, {512, 100, 1}).step_s);
  CHECK(s.step_s > least_step_s(a100, mistral));
}

TEST_CASE("attention of a prompt multiplies each row by what lies before it, in two parts") {
  const card& a100 = card_of("A100-40G");
  const attention_shape shape{32, 8, 128};
  const kernel_counts c = prefill_attention_counts(a100, shape, 1536);
  CHECK(c.blocks == 8 * 1536 * 4 / prefill_attention_rows);
  // Scores and sums: 2 products of 128 dimensions with the mean of 800 positions, each doubled.
  CHECK(c.mmas == 32.0 * 1536 * 800 * 128 * 2 * 2 / 2048);
  CHECK(prefill_attention_counts(a100, shape, 3072).mmas > 3.8 * c.mmas);
}
