// attention()'s CUDA form: decode_attention, row by row. The shapes that supports() refuses go
// through the portable form.
#include <algorithm>
#include <cstdint>

#include "config/base/assert.hpp"
#include "gpu/attention/cuda/combine_attention.hpp"
#include "gpu/attention/cuda/decode_attention.hpp"
#include "gpu/attention/cuda/plan.hpp"
#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/space.hpp"

namespace twill::gpu::cuda {

namespace {

/// Shared memory that a block may have on the smallest GPU that we promise.
constexpr int most_shared_of_block = 99 * 1024;
/// Blocks that the shared memory of a multiprocessor holds at once where it has 228 KiB, the most
/// of all. Registers must leave room for them, and need not for more than four or, where KV is f32
/// or a block has 16 heads, three.
template <class Shape>
constexpr int blocks_at_once() {
  const int by_shared = 228 * 1024 / (Shape::shared_bytes + 1024);
  return std::min(by_shared, Shape::tiles == 1 && !Shape::f32 ? 4 : 3);
}
/// What every block may have without asking.
constexpr int plain_shared = 48 * 1024;

template <class Element, int Dim, int Tiles>
__global__ void __launch_bounds__(decode_threads,
                                  blocks_at_once<decode_shape<Element, Dim, Tiles>>())
    decode_attention_kernel(const decode_attention_args args) {
  decode_attention<Element, Dim, Tiles, device_ptx>{{device_ptx{}}, args}.run();
}

__global__ void __launch_bounds__(combine_threads)
    combine_attention_kernel(const combine_attention_args args) {
  combine_attention<device_ptx>{device_ptx{}, args}.run();
}

template <class Element, int Dim, int Tiles>
void launch(cudaStream_t stream, std::int64_t blocks, const decode_attention_args& args) {
  constexpr int shared = decode_shape<Element, Dim, Tiles>::shared_bytes;
  static_assert(shared <= most_shared_of_block);
  const auto kernel = decode_attention_kernel<Element, Dim, Tiles>;
  if constexpr (shared > plain_shared) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    TWILL_ASSERT(allowed == cudaSuccess, "attention: the GPU must allow 99 KiB of shared memory");
  }
  kernel<<<static_cast<unsigned>(blocks), decode_threads, shared, stream>>>(args);
  detail::count_launch();
}

template <class Element, int Dim>
void launch(cudaStream_t stream, std::int64_t blocks, const decode_attention_args& args) {
  if (args.group <= decode_tile_heads)
    launch<Element, Dim, 1>(stream, blocks, args);
  else
    launch<Element, Dim, 2>(stream, blocks, args);
}

template <class Element>
void launch(cudaStream_t stream, std::int64_t blocks, const decode_attention_args& args) {
  switch (args.kv.head_dim) {
  case 64:
    return launch<Element, 64>(stream, blocks, args);
  case 80:
    return launch<Element, 80>(stream, blocks, args);
  case 96:
    return launch<Element, 96>(stream, blocks, args);
  case 128:
    return launch<Element, 128>(stream, blocks, args);
  default:
    return launch<Element, 256>(stream, blocks, args);
  }
}

bool supports(const device&, const ragged_batch&, const attention_args& args) {
  return decode_takes(args.kv);
}

std::int64_t scratch_bytes(const device&, std::int32_t n_heads, std::int32_t n_kv_heads,
                           std::int32_t head_dim, std::int64_t n_tokens, std::int64_t reach) {
  return most_result_bytes({n_heads, n_kv_heads, head_dim}, n_tokens, reach);
}

void run(device& dev, const ragged_batch& batch, const attention_args& given) {
  const kv_layer& kv = given.kv;
  const decode_heads heads{given.n_heads, kv.n_kv_heads, kv.head_dim};
  const decode_plan plan = plan_decode(
      heads, batch.n_tokens, std::int64_t{batch.max_blocks} * kv.block_tokens, given.window);
  decode_attention_args args{};
  args.kv = kv;
  args.group = heads.group();
  args.parts = plan.parts;
  args.splits = plan.splits;
  args.scale = given.scale;
  args.window = given.window;
  args.slopes = given.alibi_slopes;
  args.q_stride = given.q.row_stride;
  args.max_blocks = batch.max_blocks;
  args.sequence_of = batch.sequence_of;
  args.positions = batch.positions;
  args.block_table = batch.block_table;
  args.q = given.q.as<const float>();
  args.out = {given.out.data, given.out.type, given.out.row_stride};
  if (plan.splits > 1) {
    auto* floats = static_cast<float*>(dev.scratch(static_cast<std::size_t>(plan.result_bytes)));
    const std::int64_t results = plan.rows_at_once * given.n_heads * plan.chunks;
    args.results = {floats, floats + results, floats + 2 * results, given.n_heads, plan.chunks};
  }
  const cudaStream_t stream = stream_of(dev.where());
  for (std::int64_t row = 0; row < batch.n_tokens; row += plan.rows_at_once) {
    const std::int64_t rows = std::min(plan.rows_at_once, batch.n_tokens - row);
    with_kv_element(kv.type, [&](auto element) {
      launch<decltype(element)>(stream, rows * heads.blocks() * plan.splits, args);
    });
    if (plan.splits > 1) {
      combine_attention_kernel<<<static_cast<unsigned>(rows * given.n_heads), combine_threads, 0,
                                 stream>>>(
          {args.results, kv.head_dim, args.window, args.positions, args.out});
      detail::count_launch();
    }
    args.q += rows * args.q_stride;
    args.out.data = static_cast<char*>(args.out.data) +
                    rows * args.out.stride * static_cast<std::int64_t>(size_of(args.out.type));
    args.positions += rows;
    args.sequence_of += rows;
  }
}

} // namespace

constinit const detail::attention_backend attention{
    scratch_bytes, {run, supports}, {}, {}}; // KV4 goes through the portable form

} // namespace twill::gpu::cuda
