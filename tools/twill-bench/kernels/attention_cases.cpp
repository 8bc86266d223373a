#include <numeric>

#include "gpu/attention/attention.hpp"
#include "gpu/rows/rope.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/row_cases.hpp"

namespace twill::bench {

namespace {

using gpu::dtype;

/// One sequence with its KV, its heads and the rows of its new tokens. On a GPU, successive
/// runs use different buffers of KV and activations in turn, so that no buffer is still in a cache.
struct sequence {
  std::int32_t n_heads, n_kv_heads, head_dim, past, rows;
  dtype type;
  gpu::buffer positions, sequence_of, first_token, lengths, table, keys, values;
  device_floats key_scales, value_scales, q, k, v, out, cos, sin;
  gpu::ragged_batch batch;
  std::int32_t n_blocks_of_turn = 0;
  std::int32_t turns = 1;
  /// Successive runs use `turns` KV buffers in turn. For one buffer, these are the number of
  /// positions, summed over the KV heads, and the bytes of the keys (the values take as many).
  std::int64_t kv_positions = 0, kv_bytes = 0;
  mutable std::int64_t turn = 0;

  sequence(gpu::device& dev, const kernel_selection& selection, std::int32_t heads,
           std::int32_t kv_heads, std::int32_t dim, std::int32_t past_tokens, std::int32_t new_rows,
           dtype kv_type)
      : n_heads(heads), n_kv_heads(kv_heads), head_dim(dim), past(past_tokens), rows(new_rows),
        type(kv_type) {
    const std::int32_t n_blocks = (past + rows + block_tokens - 1) / block_tokens;
    std::vector<std::int32_t> at(static_cast<std::size_t>(rows));
    std::iota(at.begin(), at.end(), past);
    positions = to_device(dev, at);
    sequence_of = to_device(dev, std::vector<std::int32_t>(at.size(), 0));
    first_token = to_device(dev, std::vector<std::int32_t>{0, rows});
    lengths = to_device(dev, std::vector<std::int32_t>{past + rows});
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(n_blocks));
    // Backwards, so that neighbours in time are not neighbours in memory.
    for (std::int32_t i = 0; i < n_blocks; ++i)
      blocks[static_cast<std::size_t>(i)] = n_blocks - 1 - i;
    table = to_device(dev, blocks);
    if (!dev.memory_is_host()) turns = turns_of(selection, kv_row_bytes() * (past + rows));
    kv_positions = std::int64_t{n_blocks} * n_kv_heads * block_tokens;
    kv_bytes = kv_positions * head_dim * static_cast<std::int64_t>(gpu::size_of(type));
    keys = filled(dev, kv_bytes * turns, 0x11);
    values = filled(dev, kv_bytes * turns, 0x11);
    key_scales = device_floats(dev, kv_positions * turns, 0.01F);
    value_scales = device_floats(dev, kv_positions * turns, 0.01F);
    const std::int64_t all_rows = std::int64_t{rows} * turns;
    q = device_floats(dev, all_rows * n_heads * head_dim, 0.1F);
    out = device_floats(dev, all_rows * n_heads * head_dim, 0);
    k = device_floats(dev, all_rows * n_kv_heads * head_dim, 0.1F);
    v = device_floats(dev, all_rows * n_kv_heads * head_dim, 0.1F);
    cos = device_floats(dev, std::int64_t{rows} * head_dim / 2, 0.6F);
    sin = device_floats(dev, std::int64_t{rows} * head_dim / 2, 0.8F);
    batch = {rows,
             1,
             n_blocks,
             static_cast<const std::int32_t*>(positions.data()),
             static_cast<const std::int32_t*>(sequence_of.data()),
             static_cast<const std::int32_t*>(first_token.data()),
             static_cast<const std::int32_t*>(lengths.data()),
             static_cast<const std::int32_t*>(table.data())};
    n_blocks_of_turn = n_blocks;
  }

  /// The KV buffer of one turn.
  gpu::kv_layer kv_of(std::int64_t at) const {
    return {static_cast<char*>(keys.data()) + at * kv_bytes,
            static_cast<char*>(values.data()) + at * kv_bytes,
            type,
            n_blocks_of_turn,
            n_kv_heads,
            block_tokens,
            head_dim,
            key_scales.data() + at * kv_positions,
            value_scales.data() + at * kv_positions};
  }
  /// The rows of `n` heads in the buffer of one turn.
  gpu::tensor_ref rows_of(const device_floats& all, std::int64_t at, std::int32_t n) const {
    const std::int64_t cols = std::int64_t{n} * head_dim;
    return all.matrix(rows, cols, at * rows * cols);
  }
  std::int64_t next_turn() const { return turn++ % turns; }

  std::string shape() const {
    return std::to_string(rows) + " rows after " + std::to_string(past) + ", " +
           std::to_string(n_heads) + "/" + std::to_string(n_kv_heads) + " heads of " +
           std::to_string(head_dim);
  }
  double kv_row_bytes() const {
    const auto values_of_row = static_cast<double>(n_kv_heads) * head_dim;
    return 2 * (values_of_row * static_cast<double>(gpu::size_of(type)) +
                (type == dtype::i8 ? n_kv_heads * 4.0 : 0.0));
  }
};

kernel_case attention_case(gpu::device& dev, const sequence& s) {
  kernel_case c;
  c.op = std::string("attention ") + name_of(s.type);
  c.shape = s.shape();
  c.bytes = s.kv_row_bytes() * (s.past + s.rows) + 8.0 * s.rows * s.n_heads * s.head_dim;
  const double seen = s.rows * (s.past + (s.rows + 1) / 2.0);
  c.operations = 4.0 * seen * s.n_heads * s.head_dim;
  c.turn = s.turns;
  c.run = [&dev, &s] {
    const std::int64_t at = s.next_turn();
    gpu::attention_args args;
    args.q = s.rows_of(s.q, at, s.n_heads);
    args.out = s.rows_of(s.out, at, s.n_heads);
    args.kv = s.kv_of(at);
    args.n_heads = s.n_heads;
    args.scale = 0.088F;
    args.bf16_products = s.type != dtype::f32;
    gpu::attention(dev, s.batch, args);
  };
  return c;
}

kernel_case store_case(gpu::device& dev, const sequence& s, gpu::rope_kind rope) {
  kernel_case c;
  c.op = std::string(rope == gpu::rope_kind::interleaved ? "rope interleaved" : "rope halves") +
         " and store " + name_of(s.type);
  c.shape = s.shape();
  c.bytes = s.rows * (s.kv_row_bytes() + 8.0 * s.head_dim * (s.n_heads + s.n_kv_heads) +
                      4.0 * s.n_kv_heads * s.head_dim);
  c.operations = 3.0 * s.rows * s.head_dim * (s.n_heads + s.n_kv_heads);
  c.turn = s.turns;
  c.run = [&dev, &s, rope] {
    const std::int64_t at = s.next_turn();
    gpu::rope_store_args args;
    args.q = s.rows_of(s.q, at, s.n_heads);
    args.k = s.rows_of(s.k, at, s.n_kv_heads);
    args.v = s.rows_of(s.v, at, s.n_kv_heads);
    args.n_heads = s.n_heads;
    args.rope = rope;
    args.rotary_dim = s.head_dim;
    args.cos = s.cos.matrix(s.rows, s.head_dim / 2);
    args.sin = s.sin.matrix(s.rows, s.head_dim / 2);
    args.kv = s.kv_of(at);
    gpu::rope_and_store(dev, s.batch, args);
  };
  return c;
}

} // namespace

void for_each_attention_case(gpu::device& dev, const kernel_selection& selection,
                             const std::function<void(const kernel_case&)>& measure) {
  struct step {
    std::int32_t heads, kv_heads, past, rows;
  };
  std::vector<step> steps{{32, 8, 8191, 1}, {40, 40, 4095, 1}, {32, 8, 512, 256}};
  if (selection.small) steps = {{4, 2, 31, 1}, {4, 2, 16, 8}};
  for (const step& at : steps)
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::i8})
      where_memory_suffices(std::string("attention ") + name_of(type), [&] {
        const sequence s(dev, selection, at.heads, at.kv_heads, 128, at.past, at.rows, type);
        for (const kernel_case& c :
             {attention_case(dev, s), store_case(dev, s, gpu::rope_kind::half_split),
              store_case(dev, s, gpu::rope_kind::interleaved)})
          if (selected(selection, c)) measure(c);
      });
}

} // namespace twill::bench
