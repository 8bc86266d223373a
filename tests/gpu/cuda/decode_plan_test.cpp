#include "tests/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gpu/attention/cuda/plan.hpp"
#include "gpu/detail/shapes.hpp"

using namespace twill::gpu;
using namespace twill::gpu::cuda;

TEST_CASE(
    "every plan of cuda decode attention covers its rows within the scratch that is reserved") {
  for (const decode_heads& of :
       {decode_heads{32, 8, 128}, decode_heads{32, 32, 128}, decode_heads{71, 1, 64},
        decode_heads{32, 2, 128}, decode_heads{9, 3, 64}, decode_heads{128, 8, 256}})
    for (const std::int64_t reach : {1, 256, 257, 4096, 32768, 200000}) {
      CAPTURE(of.n_heads, of.n_kv_heads, reach);
      CHECK(of.parts() * (of.group() <= 8 ? 8 : 16) >= of.group());
      std::int64_t most = 0;
      for (const std::int64_t n : {1, 2, 15, 32, 63, 64, 255, 256, 300, 2047, 8192}) {
        for (const std::int32_t window : {0, 1, 256, 257, 258, 5000}) {
          CAPTURE(n, window);
          const decode_plan plan = plan_decode(of, n, reach, window);
          CHECK(plan.rows_at_once >= 1);
          CHECK(plan.rows_at_once <= n);
          CHECK(plan.splits >= 1);
          CHECK(plan.splits <= plan.chunks);
          CHECK((plan.splits == 1) == (plan.result_bytes == 0));
          CHECK(plan.result_bytes <=
                std::max(decode_most_result_bytes, of.result_bytes(plan.chunks)));
          // No row, wherever it ends, sees more chunks than the plan has.
          for (const std::int64_t end :
               {std::int64_t{1}, std::int64_t{256}, std::int64_t{257}, reach - 1, reach}) {
            if (end < 1 || end > reach) continue;
            const std::int64_t begin = window > 0 && end > window ? end - window : 0;
            CHECK((end - 1) / decode_chunk - begin / decode_chunk + 1 <= plan.chunks);
          }
          most = std::max(most, plan.result_bytes);
        }
        CHECK(most <= most_result_bytes(of, n, reach));
      }
    }
}

TEST_CASE("the launches of every plan of cuda decode attention hold at most 2^31 - 1 blocks") {
  constexpr std::int64_t most = 0x7fffffff;
  for (const decode_heads& of : {decode_heads{1, 1, 64}, decode_heads{128, 128, 128},
                                 decode_heads{71, 1, 64}, decode_heads{4096, 8, 256}})
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{2047}, most / 128, most})
      for (const std::int64_t reach : {std::int64_t{1}, std::int64_t{300}, most}) {
        CAPTURE(of.n_heads, of.n_kv_heads, n, reach);
        const decode_plan plan = plan_decode(of, n, reach, 0);
        CHECK(plan.rows_at_once >= 1);
        CHECK(plan.rows_at_once * of.blocks() * plan.splits <= most);
        if (plan.splits > 1) CHECK(plan.rows_at_once * of.n_heads <= most);
      }
}

TEST_CASE("cuda prefill attention has tiles for every cut of a step into sequences") {
  for (const std::int32_t group : {1, 3, 8, 16, 47, 48, 49, 71, 128})
    for (const std::vector<std::int32_t>& lengths : {std::vector<std::int32_t>{1},
                                                     {48},
                                                     {49},
                                                     {1, 1, 1, 1},
                                                     {0, 47, 0, 1, 96, 5, 0},
                                                     {100, 3, 2000},
                                                     std::vector<std::int32_t>(70, 13)}) {
      CAPTURE(group, lengths);
      const std::int32_t n = std::accumulate(lengths.begin(), lengths.end(), 0);
      const auto sequences = static_cast<std::int32_t>(lengths.size());
      std::int32_t first = 0;
      for (std::int32_t s = 0; s < sequences; ++s) {
        const std::int32_t next = first + lengths[static_cast<std::size_t>(s)];
        const std::int32_t tiles =
            prefill_tile_of(s + 1, next, group) - prefill_tile_of(s, first, group);
        CHECK(tiles * prefill_rows >= (next - first) * group);
        first = next;
      }
      CHECK(prefill_tile_of(0, 0, group) == 0);
      CHECK(prefill_tile_of(sequences, n, group) == prefill_tiles(n, sequences, group));
    }
}

TEST_CASE("cuda prefill attention is taken where its blocks keep a GPU busy") {
  const decode_heads of{32, 8, 128};
  CHECK(prefill_pays(of, 512, 1));
  CHECK(prefill_pays(of, 64 + 512, 65)); // 64 decodes beside a prompt
  CHECK(prefill_pays(of, 64 * 5, 64));   // drafts of many sequences
  CHECK_FALSE(prefill_pays(of, 1, 1));
  CHECK_FALSE(prefill_pays(of, 256, 256));
  CHECK_FALSE(prefill_pays(of, 8, 1)); // drafts of one sequence
  // Counts of query rows, and blocks of a launch, that an int does not hold.
  CHECK_FALSE(prefill_pays({128, 1, 64}, 0x7fffffff / 128 + 1, 1));
  CHECK(prefill_pays({128, 1, 64}, 0x7fffffff / 128, 1));
  CHECK_FALSE(prefill_pays({4096, 4096, 64}, 48 << 19, 1));
}

TEST_CASE("cuda decode attention takes KV that copies of 16 bytes reach") {
  alignas(16) static unsigned char memory[32];
  const auto takes = [](dtype type, std::int32_t dim, std::int32_t block_tokens,
                        std::int64_t more = 0, std::int64_t apart = 0, int shifted = 0) {
    kv_layer kv;
    kv.keys = memory;
    kv.values = memory + shifted;
    kv.type = type;
    kv.n_blocks = 4;
    kv.n_kv_heads = 2;
    kv.block_tokens = block_tokens;
    kv.head_dim = dim;
    kv.apart = apart;
    float scale = 1;
    kv.key_scales = kv.value_scales = &scale;
    kv.block_stride = std::int64_t{2} * dim * block_tokens + more;
    return decode_takes(detail::checked_kv(kv));
  };
  for (const std::int32_t dim : {64, 80, 96, 128, 256}) {
    CHECK(takes(dtype::f16, dim, 8));
    CHECK(takes(dtype::bf16, dim, 24));
    CHECK(takes(dtype::i8, dim, 16));
    CHECK(takes(dtype::f32, dim, 4));
    for (const dtype type : {dtype::f16, dtype::bf16, dtype::i8, dtype::f32}) {
      kv_layer kv;
      kv.type = type;
      kv.head_dim = dim;
      kv.block_tokens = 65536 * 8;
      CHECK(prefill_takes(kv) == (type != dtype::f32 && dim != 256));
      kv.block_tokens += 8;
      CHECK_FALSE(prefill_takes(kv));
    }
  }
  for (const std::int32_t dim : {3, 16, 40, 100, 192})
    CHECK_FALSE(takes(dtype::f16, dim, 16));
  CHECK_FALSE(takes(dtype::f16, 64, 12));
  CHECK_FALSE(takes(dtype::i8, 64, 8));
  CHECK_FALSE(takes(dtype::f32, 64, 6));
  CHECK(takes(dtype::f16, 64, 16, 8, 8));
  CHECK_FALSE(takes(dtype::f16, 64, 16, 4));
  CHECK_FALSE(takes(dtype::f16, 64, 16, 0, 4));
  CHECK_FALSE(takes(dtype::i8, 64, 16, 8));
  CHECK(takes(dtype::i8, 64, 16, 16, 16));
  CHECK(takes(dtype::f32, 64, 16, 4, 4));
  CHECK_FALSE(takes(dtype::f32, 64, 16, 2));
  CHECK_FALSE(takes(dtype::f32, 64, 16, 0, 2));
  CHECK_FALSE(takes(dtype::f16, 64, 16, 0, 0, 8));
}
