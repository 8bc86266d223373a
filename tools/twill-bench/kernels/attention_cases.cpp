#include <numeric>

#include "gpu/attention/attention.hpp"
#include "gpu/rows/rope.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/row_cases.hpp"

namespace twill::bench {

namespace {

using gpu::dtype;

constexpr std::int32_t block_tokens = 16;

/// One sequence's KV, heads and step.
struct sequence {
  std::int32_t n_heads, n_kv_heads, head_dim, past, rows;
  dtype type;
  gpu::buffer positions, sequence_of, first_token, lengths, table, keys, values;
  device_floats key_scales, value_scales, q, k, v, out, cos, sin;
  gpu::ragged_batch batch;
  gpu::kv_layer kv;
  std::vector<std::int32_t> first{0, 0}, length{0};

  sequence(gpu::device& dev, std::int32_t heads, std::int32_t kv_heads, std::int32_t dim,
           std::int32_t past_tokens, std::int32_t new_rows, dtype kv_type)
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
    for (std::int32_t i = 0; i < n_blocks; ++i) // backwards: neighbours in time, not in memory
      blocks[static_cast<std::size_t>(i)] = n_blocks - 1 - i;
    table = to_device(dev, blocks);
    const std::int64_t kv_positions = std::int64_t{n_blocks} * n_kv_heads * block_tokens;
    const auto bytes = static_cast<std::size_t>(kv_positions * head_dim) * gpu::size_of(type);
    keys = to_device(dev, std::vector<unsigned char>(bytes, 0x11));
    values = to_device(dev, std::vector<unsigned char>(bytes, 0x11));
    key_scales = device_floats(dev, kv_positions, 0.01F);
    value_scales = device_floats(dev, kv_positions, 0.01F);
    q = device_floats(dev, std::int64_t{rows} * n_heads * head_dim, 0.1F);
    out = device_floats(dev, std::int64_t{rows} * n_heads * head_dim, 0);
    k = device_floats(dev, std::int64_t{rows} * n_kv_heads * head_dim, 0.1F);
    v = device_floats(dev, std::int64_t{rows} * n_kv_heads * head_dim, 0.1F);
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
    kv = {keys.data(),       values.data(),      type, n_blocks, n_kv_heads, block_tokens, head_dim,
          key_scales.data(), value_scales.data()};
  }

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
  c.run = [&dev, &s] {
    gpu::attention_args args;
    args.q = s.q.matrix(s.rows, std::int64_t{s.n_heads} * s.head_dim);
    args.out = s.out.matrix(s.rows, std::int64_t{s.n_heads} * s.head_dim);
    args.kv = s.kv;
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
  c.run = [&dev, &s, rope] {
    gpu::rope_store_args args;
    args.q = s.q.matrix(s.rows, std::int64_t{s.n_heads} * s.head_dim);
    args.k = s.k.matrix(s.rows, std::int64_t{s.n_kv_heads} * s.head_dim);
    args.v = s.v.matrix(s.rows, std::int64_t{s.n_kv_heads} * s.head_dim);
    args.n_heads = s.n_heads;
    args.rope = rope;
    args.rotary_dim = s.head_dim;
    args.cos = s.cos.matrix(s.rows, s.head_dim / 2);
    args.sin = s.sin.matrix(s.rows, s.head_dim / 2);
    args.kv = s.kv;
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
    for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::i8}) {
      const sequence s(dev, at.heads, at.kv_heads, 128, at.past, at.rows, type);
      for (const kernel_case& c :
           {attention_case(dev, s), store_case(dev, s, gpu::rope_kind::half_split),
            store_case(dev, s, gpu::rope_kind::interleaved)})
        if (selected(selection, c)) measure(c);
    }
}

} // namespace twill::bench
