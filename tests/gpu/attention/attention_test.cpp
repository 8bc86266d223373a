#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gpu/attention/attention.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/half.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/rope.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;
using gpu::dtype;
using test::chunk;
using test::device_array;
using test::ragged_case;

namespace {

struct shape {
  std::int32_t n_heads = 9, n_kv_heads = 3, head_dim = 64, block_tokens = 16;
  dtype type = dtype::f32;
  std::int32_t window = 0;
  bool alibi = false;
  bool bf16_products = false;
};

/// Slopes of ALiBi (Press et al. 2022), extended to any number of heads as the authors' code does
/// it: the slopes for the next lower power of two, then every other slope for twice that power.
std::vector<float> alibi_slopes(std::int32_t n_heads) {
  std::int32_t whole = 1;
  while (whole * 2 <= n_heads)
    whole *= 2;
  std::vector<float> slopes;
  for (std::int32_t h = 1; h <= whole; ++h)
    slopes.push_back(std::exp2(-8.0f * static_cast<float>(h) / static_cast<float>(whole)));
  for (std::int32_t h = 1; static_cast<std::int32_t>(slopes.size()) < n_heads; h += 2)
    slopes.push_back(std::exp2(-4.0f * static_cast<float>(h) / static_cast<float>(whole)));
  return slopes;
}

/// Normal random numbers. A seed gives the same sequence whatever `n` is. Sequences are cached,
/// because drawing takes longer than the products in which they are used.
std::vector<float> normal_floats(std::size_t n, unsigned seed) {
  static std::map<unsigned, std::vector<float>> drawn;
  std::vector<float>& all = drawn[seed];
  if (all.size() < n) all = test::random_floats(n, seed);
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)};
}

/// Expected output rows, computed by the oracle. The key of a row is whether products are rounded
/// to bf16, the sequence, and the position. The expected rows of a shape are the same on every
/// device, so they are computed once.
using oracle_rows = std::map<std::tuple<bool, std::size_t, std::int32_t>, std::vector<double>>;

/// Sequences with q, k and v of all their positions; a step computes some of these positions.
struct setup {
  shape s;
  std::vector<std::int32_t> lengths;
  ragged_case rows;
  std::vector<std::vector<float>> q, k, v;            // (length, heads * head_dim) per sequence
  std::vector<std::vector<float>> stored_k, stored_v; // the same after rounding to the KV type
  std::vector<float> slopes;
  bool rounds; ///< the device multiplies numbers that are rounded to bf16
  std::unique_ptr<device_array<float>> device_slopes;
  std::unique_ptr<device_array<unsigned char>> keys, values;
  std::unique_ptr<device_array<float>> key_scales, value_scales;

  setup(gpu::device& dev, const shape& s_, const std::vector<std::int32_t>& lengths_)
      : s(s_), lengths(lengths_), rows(lengths_, s_.block_tokens, 5) {
    rounds = s.bf16_products && s.type != dtype::f32 && dev.memory_is_host() &&
             dev.isa() >= gpu::host::isa::avx512_bf16;
    unsigned seed = 100;
    for (const std::int32_t n : lengths) {
      const auto length = static_cast<std::size_t>(n);
      q.push_back(normal_floats(length * width(s.n_heads), seed++));
      k.push_back(normal_floats(length * width(s.n_kv_heads), seed++));
      v.push_back(normal_floats(length * width(s.n_kv_heads), seed++));
    }
    slopes = alibi_slopes(s.n_heads);
    device_slopes = std::make_unique<device_array<float>>(dev, slopes);
    // All memory that belongs to no position holds NaN, so reading it would show in the results.
    const auto bytes =
        static_cast<std::size_t>(rows.n_blocks * block_stride() + apart()) * gpu::size_of(s.type);
    const std::vector<unsigned char> garbage(bytes, 0xff);
    keys = std::make_unique<device_array<unsigned char>>(dev, garbage);
    values = std::make_unique<device_array<unsigned char>>(dev, garbage);
    const std::vector<float> nan(static_cast<std::size_t>(rows.n_blocks * scale_stride() + apart()),
                                 NAN);
    key_scales = std::make_unique<device_array<float>>(dev, nan);
    value_scales = std::make_unique<device_array<float>>(dev, nan);
    for (auto* side : {&k, &v})
      for (const std::vector<float>& rows_of : *side)
        (side == &k ? stored_k : stored_v).push_back(as_stored(rows_of));
  }

  std::size_t width(std::int32_t heads) const {
    return static_cast<std::size_t>(heads * s.head_dim);
  }

  /// Blocks follow each other without gaps, except where the number of KV heads is odd.
  std::int64_t scale_stride() const {
    return std::int64_t{s.n_kv_heads} * s.block_tokens + s.n_kv_heads % 2 * 3;
  }
  std::int64_t block_stride() const {
    return std::int64_t{s.n_kv_heads} * s.block_tokens * s.head_dim + s.n_kv_heads % 2 * 40;
  }

  /// With an odd number of KV heads there is a gap between the two halves of the arena.
  std::int64_t apart() const { return s.n_kv_heads % 2 * 136; }

  /// Whether the gap between the halves still has what it was filled with.
  bool gap_is_untouched() const {
    const auto size = static_cast<std::int64_t>(gpu::size_of(s.type));
    const auto lasts = [](const auto& all, std::int64_t first, std::int64_t n, auto as_before) {
      return std::all_of(all.begin() + first, all.begin() + first + n, as_before);
    };
    const auto garbage = [](unsigned char byte) { return byte == 0xff; };
    const auto nan = [](float x) { return std::isnan(x); };
    const std::int64_t half = rows.n_blocks / 2;
    bool untouched = true;
    for (const auto* side : {&keys, &values})
      untouched =
          untouched && lasts((*side)->get(), half * block_stride() * size, apart() * size, garbage);
    for (const auto* side : {&key_scales, &value_scales})
      untouched = untouched && lasts((*side)->get(), half * scale_stride(), apart(), nan);
    return untouched;
  }

  gpu::kv_layer layer() const {
    gpu::kv_layer kv = {keys->data(),  values->data(),     s.type,
                        rows.n_blocks, s.n_kv_heads,       s.block_tokens,
                        s.head_dim,    key_scales->data(), value_scales->data()};
    if (s.n_kv_heads % 2 == 1) {
      kv.block_stride = block_stride();
      kv.scale_stride = scale_stride();
      kv.n_blocks = rows.n_blocks / 2;
      kv.apart = kv.scale_apart = apart();
    }
    return kv;
  }

  std::vector<float> gather(const std::vector<std::vector<float>>& from, std::size_t columns,
                            const std::vector<std::size_t>& sequences,
                            const std::vector<chunk>& chunks) const {
    std::vector<float> all;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const float* data =
          from[sequences[i]].data() + static_cast<std::size_t>(chunks[i].past) * columns;
      all.insert(all.end(), data, data + static_cast<std::size_t>(chunks[i].rows) * columns);
    }
    return all;
  }

  /// One step: stores its keys and values, then attends.
  std::vector<float> run(gpu::device& dev, const std::vector<std::size_t>& sequences,
                         const std::vector<chunk>& chunks, bool portable = false) {
    rows.step(dev, sequences, chunks);
    const auto n = rows.batch.n_tokens;
    device_array<float> dq(dev, gather(q, width(s.n_heads), sequences, chunks));
    device_array<float> dk(dev, gather(k, width(s.n_kv_heads), sequences, chunks));
    device_array<float> dv(dev, gather(v, width(s.n_kv_heads), sequences, chunks));
    device_array<float> out(dev,
                            std::vector<float>(static_cast<std::size_t>(n) * width(s.n_heads), -7));
    const auto matrix = [&](device_array<float>& a, std::int32_t heads) {
      return gpu::view_2d(a.data(), dtype::f32, n, static_cast<std::int64_t>(width(heads)));
    };
    gpu::rope_store_args store;
    store.q = matrix(dq, s.n_heads);
    store.k = matrix(dk, s.n_kv_heads);
    store.v = matrix(dv, s.n_kv_heads);
    store.n_heads = s.n_heads;
    store.kv = layer();
    gpu::rope_and_store(dev, rows.batch, store);
    gpu::attention_args args;
    args.q = store.q;
    args.kv = layer();
    args.n_heads = s.n_heads;
    args.scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
    args.window = s.window;
    args.alibi_slopes = s.alibi ? device_slopes->data() : nullptr;
    args.out = matrix(out, s.n_heads);
    args.bf16_products = s.bf16_products;
    if (portable) {
      args.kv = gpu::detail::checked_kv(args.kv);
      dev.ops().portable->get<gpu::detail::attention_backend>().attend.run(dev, rows.batch, args);
      dev.fence();
    } else {
      gpu::attention(dev, rows.batch, args);
    }
    return out.get();
  }

  /// Keys or values as attention computes with them after they were stored in the KV type.
  std::vector<float> as_stored(const std::vector<float>& x) const {
    std::vector<float> kept;
    for (std::size_t at = 0; at < x.size(); at += static_cast<std::size_t>(s.head_dim)) {
      float largest = 0;
      for (std::size_t d = at; d < at + static_cast<std::size_t>(s.head_dim); ++d)
        largest = std::max(largest, std::abs(x[d]));
      for (std::size_t d = at; d < at + static_cast<std::size_t>(s.head_dim); ++d)
        kept.push_back(rounded(x[d], largest));
    }
    return kept;
  }

  float rounded(float x, float largest) const {
    if (s.type == dtype::f16)
      return as_multiplied(gpu::detail::f16_to_f32(gpu::detail::f32_to_f16(x)));
    if (s.type == dtype::bf16) return gpu::detail::bf16_to_f32(gpu::detail::f32_to_bf16(x));
    if (s.type == dtype::i8)
      return largest / 127 * static_cast<float>(std::nearbyint(double{x} * double{127 / largest}));
    return x;
  }

  float as_multiplied(float x) const {
    return rounds ? gpu::detail::bf16_to_f32(gpu::detail::f32_to_bf16(x)) : x;
  }
  /// The oracle does not round softmax weights; rounding to bf16 changes each by 1/256 at most.
  double tolerance() const {
    if (!rounds) return 2e-5;
    float largest = 0;
    for (const std::vector<float>& rows_of : stored_v)
      for (const float x : rows_of)
        largest = std::max(largest, std::abs(x));
    return double{largest} / 256 + 2e-5;
  }

  std::vector<double> oracle_row(std::size_t seq, std::int32_t position) const {
    std::vector<double> out;
    const std::int32_t group = s.n_heads / s.n_kv_heads;
    const auto dims = static_cast<std::size_t>(s.head_dim);
    for (std::int32_t h = 0; h < s.n_heads; ++h) {
      const float* query = q[seq].data() + static_cast<std::size_t>(position) * width(s.n_heads) +
                           static_cast<std::size_t>(h * s.head_dim);
      const std::int32_t begin = s.window > 0 ? std::max(0, position - s.window + 1) : 0;
      const auto kv_row = [&](const std::vector<float>& from, std::int32_t j) {
        return from.data() + static_cast<std::size_t>(j) * width(s.n_kv_heads) +
               static_cast<std::size_t>(h / group * s.head_dim);
      };
      const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
      std::vector<double> scaled(dims);
      for (std::size_t d = 0; d < dims; ++d)
        scaled[d] = double{as_multiplied(query[d] * scale)};
      std::vector<double> score;
      double max = -INFINITY;
      for (std::int32_t j = begin; j <= position; ++j) {
        const float* key = kv_row(stored_k[seq], j);
        double dot = 0;
        for (std::size_t d = 0; d < dims; ++d)
          dot += scaled[d] * double{key[d]};
        if (s.alibi) dot += double{slopes[static_cast<std::size_t>(h)]} * (j - position);
        score.push_back(dot);
        max = std::max(max, dot);
      }
      double sum = 0;
      for (double& x : score)
        sum += x = std::exp(x - max);
      std::vector<double> total(dims);
      for (std::int32_t j = begin; j <= position; ++j) {
        const double weight = score[static_cast<std::size_t>(j - begin)];
        const float* value = kv_row(stored_v[seq], j);
        for (std::size_t d = 0; d < dims; ++d)
          total[d] += weight * double{value[d]};
      }
      for (const double x : total)
        out.push_back(x / sum);
    }
    return out;
  }

  /// The largest error of a step's output rows. Of each chunk (the rows of one sequence), every
  /// `stride`-th row and the last one are checked. Expected rows that are missing in `known` are
  /// computed and added to it.
  double worst(oracle_rows& known, const std::vector<float>& out,
               const std::vector<std::size_t>& sequences, const std::vector<chunk>& chunks,
               std::int32_t stride = 1) const {
    double error = 0;
    std::size_t row = 0;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      for (std::int32_t r = 0; r < chunks[i].rows; ++r, ++row) {
        if (r % stride != 0 && r + 1 != chunks[i].rows) continue;
        auto& expected = known[{rounds, sequences[i], chunks[i].past + r}];
        if (expected.empty()) expected = oracle_row(sequences[i], chunks[i].past + r);
        for (std::size_t c = 0; c < expected.size(); ++c) {
          const double e = std::abs(double{out[row * expected.size() + c]} - expected[c]);
          if (std::isnan(e)) return e;
          error = std::max(error, e);
        }
      }
    }
    return error;
  }
};

/// The instruction sets that attention has kernels for.
std::vector<std::string> isas() {
  std::vector<std::string> names = test::tested_isas();
  std::erase(names, gpu::host::name_of(gpu::host::isa::avx512_vnni));
  return names;
}

/// A device by name, and another one beside it with the same kernels and one thread less.
struct tested {
  std::string name;
  std::unique_ptr<gpu::device> dev, lone;
};

/// The host with each instruction set, then the given implementations.
std::vector<tested> devices(const std::vector<int>& implementations) {
  std::vector<tested> all;
  for (const std::string& isa : isas())
    all.push_back({isa, test::open_host(isa), test::open_host(isa, 1)});
  for (const int implementation : implementations)
    all.push_back({test::name_of_implementation(implementation),
                   test::open_implementation(implementation, "plain"),
                   test::open_implementation(implementation, "plain")});
  return all;
}

/// Leaves out the portable implementation, which takes minutes for thousands of positions.
std::vector<int> fast_implementations() {
  return test::tests_cuda() ? std::vector<int>{test::cuda_implementation} : std::vector<int>{};
}

} // namespace

TEST_CASE("attention agrees with a naive oracle over shapes, KV types, windows and ALiBi") {
  const std::vector<shape> shapes{
      {},
      {.n_heads = 4, .n_kv_heads = 4, .head_dim = 32, .block_tokens = 1},
      {.n_heads = 7, .n_kv_heads = 1, .head_dim = 40, .block_tokens = 5},
      {.n_heads = 10, .n_kv_heads = 2, .head_dim = 80, .block_tokens = 32, .type = dtype::bf16},
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 96, .block_tokens = 16, .type = dtype::f16},
      {.n_heads = 71, .n_kv_heads = 1, .head_dim = 64, .block_tokens = 64},
      {.n_heads = 8, .n_kv_heads = 2, .head_dim = 128, .block_tokens = 16, .window = 33},
      {.n_heads = 2, .n_kv_heads = 2, .head_dim = 256, .block_tokens = 7, .alibi = true},
      {.n_heads = 3, .n_kv_heads = 3, .head_dim = 50, .type = dtype::f16, .window = 1},
      {.n_heads = 6, .n_kv_heads = 2, .head_dim = 64, .window = 70, .alibi = true},
      {.n_heads = 5, .n_kv_heads = 5, .head_dim = 3, .block_tokens = 2, .type = dtype::bf16},
      {.n_heads = 9, .n_kv_heads = 3, .head_dim = 64, .block_tokens = 16, .type = dtype::i8},
      {.n_heads = 4, .n_kv_heads = 1, .head_dim = 50, .block_tokens = 3, .type = dtype::i8},
      {.n_heads = 6, .n_kv_heads = 6, .head_dim = 5, .type = dtype::i8, .window = 40},
  };
  std::vector<oracle_rows> known_of(shapes.size());
  for (const auto& [name, dev, lone] : devices(test::portable_implementations())) {
    const bool only_portable = &dev->ops() == dev->ops().portable; // which rounds nothing to bf16
    for (std::size_t i = 0; i < 2 * shapes.size(); i += only_portable ? 2 : 1) {
      shape s = shapes[i / 2];
      s.bf16_products = i % 2 == 1;
      oracle_rows& known = known_of[i / 2];
      CAPTURE(name, i);
      setup a(*dev, s, {70, 1, 130, 65});
      const std::vector<std::size_t> all{0, 1, 2, 3};
      const std::vector<chunk> first{{0, 69}, {0, 1}, {0, 100}, {0, 64}};
      CHECK(a.worst(known, a.run(*dev, all, first), all, first, 7) < a.tolerance());
      const std::vector<std::size_t> later{2, 0, 3}; // a prefill chunk between two decodes
      const std::vector<chunk> second{{100, 30}, {69, 1}, {64, 1}};
      CHECK(a.worst(known, a.run(*dev, later, second), later, second, 5) < a.tolerance());
      CHECK(a.gap_is_untouched());
      if (a.rounds || only_portable) continue;
      CHECK(a.worst(known, a.run(*dev, later, second, true), later, second, 5) < 2e-5);
    }
  }
}

TEST_CASE("ALiBi agrees with a naive oracle over head counts, blocks, dims, windows and KV types") {
  const dtype types[] = {dtype::f32, dtype::f16, dtype::bf16, dtype::i8};
  const std::int32_t dims[] = {8, 24, 40, 80, 96, 112, 128, 200, 256};
  const std::int32_t blocks[] = {1, 8, 16, 17, 64};
  const std::int32_t heads[][2] = {{3, 3}, {6, 6}, {5, 1}, {12, 3}, {40, 40}, {7, 7}, {6, 2}};
  const std::int32_t windows[] = {0, 20, 64, 1};
  std::size_t next = 0; // each list has its own period, so many combinations occur
  for (const auto& [name, dev, lone] : devices(fast_implementations())) {
    for (const std::int32_t dim : dims)
      for (const std::int32_t block_tokens : blocks) {
        const auto& head = heads[next % 7];
        const shape s{.n_heads = head[0],
                      .n_kv_heads = head[1],
                      .head_dim = dim,
                      .block_tokens = block_tokens,
                      .type = types[(next + next / 4) % 4],
                      .window = windows[(next / 3) % 4],
                      .alibi = next % 5 != 4,
                      .bf16_products = next % 2 == 1};
        ++next;
        CAPTURE(name, s.n_heads, s.n_kv_heads, dim, block_tokens, static_cast<int>(s.type),
                s.window, s.alibi);
        oracle_rows known;
        setup a(*dev, s, {70, 33, 131});
        const std::vector<std::size_t> all{0, 1, 2};
        const std::vector<chunk> first{{0, 69}, {0, 33}, {0, 100}};
        CHECK(a.worst(known, a.run(*dev, all, first), all, first, 23) < a.tolerance());
        const std::vector<std::size_t> later{2, 0};
        const std::vector<chunk> second{{100, 31}, {69, 1}};
        CHECK(a.worst(known, a.run(*dev, later, second), later, second, 10) < a.tolerance());
        if (a.rounds) continue;
        CHECK(a.worst(known, a.run(*dev, later, second, true), later, second, 10) < 2e-5);
      }
  }
}

TEST_CASE("attention over several chunks of KV agrees with a naive oracle") {
  const auto all = devices(fast_implementations());
  for (const shape& s :
       {shape{}, shape{.window = 600}, shape{.type = dtype::i8},
        shape{.type = dtype::i8, .window = 600}, shape{.type = dtype::bf16, .bf16_products = true},
        shape{.type = dtype::i8, .window = 601, .bf16_products = true}}) {
    oracle_rows known;
    for (const auto& [name, dev, lone] : all) {
      CAPTURE(name, s.window, static_cast<int>(s.type), s.bf16_products);
      setup a(*dev, s, {1300});
      CHECK(a.worst(known, a.run(*dev, {0}, {{0, 1299}}), {0}, {{0, 1299}}, 211) < a.tolerance());
      CHECK(a.worst(known, a.run(*dev, {0}, {{1299, 1}}), {0}, {{1299, 1}}) < a.tolerance());
      // The rows around the ends of chunks, in a prefill and each as a decode.
      for (const std::int32_t end : {512, 1024}) {
        const std::vector<chunk> around{{end - 2, 5}};
        CHECK(a.worst(known, a.run(*dev, {0}, around), {0}, around) < a.tolerance());
        for (std::int32_t at = end - 2; at < end + 2; ++at)
          CHECK(a.worst(known, a.run(*dev, {0}, {{at, 1}}), {0}, {{at, 1}}) < a.tolerance());
      }
    }
  }
}

TEST_CASE("an attention row has the same bits in any chunking, batch and thread count") {
  const auto all = devices(fast_implementations());
  for (const shape& s : {shape{}, shape{.head_dim = 40, .type = dtype::bf16, .window = 600},
                         shape{.head_dim = 80, .type = dtype::i8, .alibi = true},
                         shape{.type = dtype::bf16, .bf16_products = true},
                         shape{.n_heads = 12,
                         .head_dim = 33,
                         .block_tokens = 5,
                         .type = dtype::f16,
                         .window = 333,
                         .bf16_products = true},
                         shape{.head_dim = 128, .type = dtype::i8, .bf16_products = true},
                         shape{.n_heads = 50, .n_kv_heads = 1, .alibi = true}}) {
    for (const auto& [name, dev, lone] : all) {
      CAPTURE(name, s.head_dim, s.n_heads, s.bf16_products);
      setup a(*dev, s, {1100, 90});
      const std::size_t row = a.width(s.n_heads);
      const std::vector<float> whole = a.run(*dev, {0}, {{0, 1100}});
      std::vector<float> parts;
      std::int32_t past = 0;
      for (const std::int32_t n : {1, 17, 300, 1, 511, 200, 69, 1}) {
        // A row of another sequence is in each step, at changing positions.
        const std::vector<float> out =
            a.run(past % 2 == 0 ? *dev : *lone, {1, 0}, {{0, past % 90 + 1}, {past, n}});
        parts.insert(parts.end(), out.end() - static_cast<std::ptrdiff_t>(row) * n, out.end());
        past += n;
      }
      REQUIRE(past == 1100);
      CHECK(test::same_bits(whole, parts));
      const std::vector<float> alone = a.run(*lone, {0}, {{1099, 1}});
      const std::vector<float> shared = a.run(*dev, {0}, {{1099, 1}});
      CHECK(test::same_bits(alone, shared));
      CHECK(test::same_bits(alone, {whole.end() - static_cast<std::ptrdiff_t>(row), whole.end()}));
    }
  }
}

TEST_CASE("an empty batch is no work") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  setup a(*dev, {}, {4});
  CHECK(a.run(*dev, {}, {}).empty());
}
