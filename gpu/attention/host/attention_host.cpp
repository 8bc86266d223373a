// The host implementation of attention(): divides a step into work items for the micro-kernels,
// which the device's threads run.
#include <algorithm>

#include "gpu/attention/detail/kv4_kernels.hpp"
#include "gpu/attention/host/attention_kernels.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/host/for_items.hpp"

namespace twill::gpu::detail {

namespace {

static_assert(host::attention_max_dim ==
              max_head_dim); // attention_kernels.hpp includes no header that knows it

/// A work item is one combination of a row (a token of the step), a KV head, a part of the KV
/// head's query heads, and a chunk of positions. Neighbouring rows of one sequence form a tile. The
/// item of a tile's first row computes all rows of the tile, and the items of the other rows do
/// nothing.
struct host_items {
  const ragged_batch& batch;
  const attention_args& args;
  host::attention_kernels kernels;
  int group, splits, heads_per_item, tile_rows;
  int chunks;      ///< items along the KV; 1 where one item computes all chunks
  float* partials; ///< (n_tokens, n_heads, chunks, attention_partial_floats), or null

  void operator()(long i) const {
    const int chunk = static_cast<int>(i % chunks);
    i /= chunks;
    const int split = static_cast<int>(i % splits);
    i /= splits;
    const int kv_head = static_cast<int>(i % args.kv.n_kv_heads);
    const int token = static_cast<int>(i / args.kv.n_kv_heads);
    const int sequence = batch.sequence_of[token];
    if ((token - batch.first_token[sequence]) % tile_rows != 0) return;

    const kv_layer& kv = args.kv;
    const int first = split * heads_per_item;
    const std::int64_t head = std::int64_t{kv_head} * group + first;
    host::attention_work w;
    w.keys = kv.keys;
    w.values = kv.values;
    w.key_scales = kv.key_scales;
    w.value_scales = kv.value_scales;
    w.type = kv.type;
    w.block_stride = kv.block_stride;
    w.scale_stride = kv.scale_stride;
    w.n_blocks = kv.n_blocks;
    w.apart = kv.apart;
    w.scale_apart = kv.scale_apart;
    w.kv_head = kv_head;
    w.block_tokens = kv.block_tokens;
    w.head_dim = kv.head_dim;
    w.blocks = batch.block_table + std::int64_t{sequence} * batch.max_blocks;
    w.q = args.q.as<const float>() + token * args.q.row_stride + head * kv.head_dim;
    w.q_stride = args.q.row_stride;
    w.positions = batch.positions + token;
    w.n_queries = std::min(tile_rows, batch.first_token[sequence + 1] - token);
    w.n_heads = std::min(heads_per_item, group - first);
    w.scale = args.scale;
    w.window = args.window;
    w.slopes = args.alibi_slopes == nullptr ? nullptr : args.alibi_slopes + head;
    w.out = args.out.as<float>() + token * args.out.row_stride + head * kv.head_dim;
    w.out_stride = args.out.row_stride;
    if (partials == nullptr) return kernels.whole(w);
    if (chunk * host::attention_chunk > w.positions[w.n_queries - 1]) return;
    const std::int64_t head_stride = chunks * host::attention_partial_floats(kv.head_dim);
    kernels.chunk(w, chunk,
                  partials + (std::int64_t{token} * args.n_heads + head) * head_stride +
                      chunk * host::attention_partial_floats(kv.head_dim),
                  args.n_heads * head_stride, head_stride);
  }
};

/// A work item is (row, head): it merges the partial results of that row's chunks, in order.
struct host_merge_items {
  const ragged_batch& batch;
  const attention_args& args;
  host::attention_kernels kernels;
  int chunks;
  const float* partials;

  void operator()(long i) const {
    const long token = i / args.n_heads;
    const int end = batch.positions[token] + 1;
    const int begin = args.window > 0 && end > args.window ? end - args.window : 0;
    const int first = begin / host::attention_chunk;
    const int count = (end - 1) / host::attention_chunk - first + 1;
    const std::int64_t floats = host::attention_partial_floats(args.kv.head_dim);
    kernels.merge(partials + (i * chunks + first) * floats, floats, count, args.kv.head_dim,
                  args.out.as<float>() + token * args.out.row_stride +
                      (i - token * args.n_heads) * args.kv.head_dim);
  }
};

int splits_of(int group) {
  return (group + host::attention_max_rows - 1) / host::attention_max_rows;
}

/// Whether each chunk of 512 positions is a work item of its own. With few rows over long contexts,
/// threads would otherwise be idle; with many rows, the partial results would take too much memory.
bool shares_chunks(const device& dev, long items, long reach) {
  const long threads = dev.info().threads;
  return reach > host::attention_chunk && items < 8 * threads && threads > 1;
}

long chunks_of(long reach) {
  return (reach + host::attention_chunk - 1) / host::attention_chunk;
}

std::int64_t partial_bytes(long n_tokens, long n_heads, long chunks, std::int32_t head_dim) {
  return n_tokens * n_heads * chunks * host::attention_partial_floats(head_dim) *
         static_cast<std::int64_t>(sizeof(float));
}

void run(device& dev, const ragged_batch& batch, const attention_args& args) {
  const int group = args.n_heads / args.kv.n_kv_heads;
  const int splits = splits_of(group);
  const int heads_per_item = (group + splits - 1) / splits;
  host_items items{batch,
                   args,
                   host::attention_kernels_for(dev.isa(), args.bf16_products),
                   group,
                   splits,
                   heads_per_item,
                   host::attention_max_rows / heads_per_item,
                   1,
                   nullptr};
  const long rows = long{batch.n_tokens} * args.kv.n_kv_heads * splits;
  long reach = 0;
  for (int i = 0; i < batch.n_sequences; ++i)
    reach = std::max(reach, long{batch.kv_lengths[i]});
  const long cost = 4 * std::min(reach, long{512}) * args.kv.head_dim * heads_per_item;
  const bool share = shares_chunks(dev, rows, reach);
  if (share) {
    items.chunks = static_cast<int>(chunks_of(reach));
    items.partials = static_cast<float*>(dev.scratch(static_cast<std::size_t>(
        partial_bytes(batch.n_tokens, args.n_heads, items.chunks, args.kv.head_dim))));
  }
  for_host_items(dev, rows * items.chunks, cost, items);
  if (share)
    for_host_items(dev, long{batch.n_tokens} * args.n_heads, 2L * args.kv.head_dim,
                   host_merge_items{batch, args, items.kernels, items.chunks, items.partials});
}

bool writes_f32(const device&, const ragged_batch&, const attention_args& args) {
  return args.out.type == dtype::f32;
}

std::int64_t scratch_bytes(const device& dev, std::int32_t n_heads, std::int32_t n_kv_heads,
                           std::int32_t head_dim, std::int64_t n_tokens, std::int64_t reach) {
  const long per_row = long{n_kv_heads} * splits_of(n_heads / n_kv_heads);
  const long rows = std::min<long>(n_tokens, (8L * dev.info().threads - 1) / per_row);
  if (rows < 1 || !shares_chunks(dev, rows * per_row, reach)) return 0;
  return partial_bytes(rows, n_heads, chunks_of(reach), head_dim);
}

template <direction Direction>
void kv4(device& dev, const kv4_geometry& at, long items) {
  const long work = 8L * kv4_group * at.kv.block_tokens;
  with_kv4_kernel<group_item, Direction>(
      at, [&](const auto& kernel) { for_host_items(dev, items, work, kernel); });
}

} // namespace

constinit const attention_backend host_attention{
    scratch_bytes, {run, writes_f32}, kv4<direction::pack>, kv4<direction::unpack>};

} // namespace twill::gpu::detail
