// The CUDA implementation of attention(). Where prefill_pays() says so, prefill_attention computes
// the sequences that have several rows (tokens) in a step; decode_attention computes all other
// rows. The portable implementation computes the shapes that supports() refuses.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "config/base/assert.hpp"
#include "gpu/attention/cuda/combine_attention.hpp"
#include "gpu/attention/cuda/decode_attention.hpp"
#include "gpu/attention/cuda/plan.hpp"
#include "gpu/attention/cuda/prefill_attention.hpp"
#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/detail/space.hpp"

namespace twill::gpu::cuda {

namespace {

/// Bytes of shared memory that a block may have on the smallest GPU we support.
constexpr int most_shared_of_block = 99 * 1024;
/// The number of blocks that must fit into a multiprocessor at once; the compiler limits the
/// registers of a kernel accordingly. It is the number of blocks that 228 KiB of shared memory can
/// hold (the most that any multiprocessor has), but at most four, or at most three where KV is f32
/// or a block has 16 heads.
template <class Shape>
constexpr int blocks_at_once() {
  const int by_shared = 228 * 1024 / (Shape::shared_bytes + 1024);
  return std::min(by_shared, Shape::tiles == 1 && !Shape::f32 ? 4 : 3);
}
/// Bytes of shared memory that a block may have without setting a kernel attribute.
constexpr int plain_shared = 48 * 1024;
/// The number of prefill attention blocks per multiprocessor for which registers are limited.
constexpr int prefill_blocks_at_once = 2;

template <class Element, int Dim, int Tiles>
__global__ void __launch_bounds__(decode_threads,
                                  blocks_at_once<decode_shape<Element, Dim, Tiles>>())
    decode_attention_kernel(const decode_attention_args args) {
  decode_attention<Element, Dim, Tiles, device_ptx>{{device_ptx{}}, args}.run();
}

template <class Element, int Dim>
__global__ void __launch_bounds__(prefill_shape<Element, Dim>::threads, prefill_blocks_at_once)
    prefill_attention_kernel(const prefill_attention_args args) {
  prefill_attention<Element, Dim, device_ptx>(device_ptx{}, args).run();
}

__global__ void __launch_bounds__(combine_threads)
    combine_attention_kernel(const combine_attention_args args) {
  combine_attention<device_ptx>{device_ptx{}, args}.run();
}

/// Launches a kernel whose blocks have this many threads and bytes of shared memory.
template <auto Kernel, int Threads, int Shared, class Args>
void launch_blocks(cudaStream_t stream, std::int64_t blocks, const Args& args) {
  static_assert(Shared <= most_shared_of_block);
  if constexpr (Shared > plain_shared) {
    static const cudaError_t allowed =
        cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shared);
    // Any other error comes from an earlier kernel, and device::fence() reports it.
    TWILL_ASSERT(allowed != cudaErrorInvalidValue,
                 "attention: the GPU must allow 99 KiB of shared memory");
  }
  Kernel<<<static_cast<unsigned>(blocks), Threads, Shared, stream>>>(args);
  detail::count_launch();
}

/// Calls f(std::integral_constant<int, dim>{}) for a head_dim that both kernels support.
template <class F>
void with_head_dim(std::int32_t dim, const F& f) {
  switch (dim) {
  case 64:
    return f(std::integral_constant<int, 64>{});
  case 80:
    return f(std::integral_constant<int, 80>{});
  case 96:
    return f(std::integral_constant<int, 96>{});
  default:
    return f(std::integral_constant<int, 128>{});
  }
}

template <class Element, int Dim, int Tiles>
void launch(cudaStream_t stream, std::int64_t blocks, const decode_attention_args& args) {
  launch_blocks<decode_attention_kernel<Element, Dim, Tiles>, decode_threads,
                decode_shape<Element, Dim, Tiles>::shared_bytes>(stream, blocks, args);
}

template <class Element, int Dim>
void launch(cudaStream_t stream, std::int64_t blocks, const decode_attention_args& args) {
  if (args.group <= decode_tile_heads)
    launch<Element, Dim, 1>(stream, blocks, args);
  else
    launch<Element, Dim, 2>(stream, blocks, args);
}

template <class Element, int Dim>
void launch(cudaStream_t stream, std::int64_t blocks, const prefill_attention_args& args) {
  using shape = prefill_shape<Element, Dim>;
  launch_blocks<prefill_attention_kernel<Element, Dim>, shape::threads, shape::shared_bytes>(
      stream, blocks, args);
}

/// For KV that decode_takes().
template <class Element>
void launch(cudaStream_t stream, std::int64_t blocks, const decode_attention_args& args) {
  if (args.kv.head_dim == 256) return launch<Element, 256>(stream, blocks, args);
  with_head_dim(args.kv.head_dim,
                [&](auto dim) { launch<Element, decltype(dim)::value>(stream, blocks, args); });
}

/// For KV that prefill_takes().
template <class Element>
void launch(cudaStream_t stream, std::int64_t blocks, const prefill_attention_args& args) {
  if constexpr (!std::is_same_v<Element, float>)
    with_head_dim(args.kv.head_dim,
                  [&](auto dim) { launch<Element, decltype(dim)::value>(stream, blocks, args); });
}

bool supports(const device&, const ragged_batch&, const attention_args& args) {
  return decode_takes(args.kv);
}

std::int64_t scratch_bytes(const device&, std::int32_t n_heads, std::int32_t n_kv_heads,
                           std::int32_t head_dim, std::int64_t n_tokens, std::int64_t reach) {
  return most_result_bytes({n_heads, n_kv_heads, head_dim}, n_tokens, reach);
}

/// Computes the sequences of a step that have several rows.
void run_prefill(const device& dev, const ragged_batch& batch, const attention_args& given,
                 const decode_heads& heads) {
  prefill_attention_args args{};
  args.q = given.q.as<const float>();
  args.q_stride = given.q.row_stride;
  args.out = {given.out.data, given.out.type, given.out.row_stride};
  args.kv = given.kv;
  args.group = heads.group();
  args.n_sequences = batch.n_sequences;
  args.tiles =
      static_cast<std::int32_t>(prefill_tiles(batch.n_tokens, batch.n_sequences, args.group));
  args.least_rows = 2;
  args.scale = given.scale;
  args.window = given.window;
  args.slopes = given.alibi_slopes;
  args.max_blocks = batch.max_blocks;
  args.positions = batch.positions;
  args.first_token = batch.first_token;
  args.block_table = batch.block_table;
  with_kv_element(given.kv.type, [&](auto element) {
    launch<decltype(element)>(stream_of(dev.where()), std::int64_t{args.tiles} * heads.n_kv_heads,
                              args);
  });
}

/// Computes every row of a step or, with `alone`, only rows whose sequence has no other row in the
/// step.
void run_decode(device& dev, const ragged_batch& batch, const attention_args& given,
                const decode_heads& heads, bool alone) {
  const kv_layer& kv = given.kv;
  const std::int32_t n = alone ? batch.n_sequences : batch.n_tokens;
  const decode_plan plan =
      plan_decode(heads, n, std::int64_t{batch.max_blocks} * kv.block_tokens, given.window);
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
  args.first_token = alone ? batch.first_token : nullptr;
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
  for (std::int64_t row = 0; row < n; row += plan.rows_at_once) {
    const std::int64_t rows = std::min(plan.rows_at_once, n - row);
    with_kv_element(kv.type, [&](auto element) {
      launch<decltype(element)>(stream, rows * heads.blocks() * plan.splits, args);
    });
    if (plan.splits > 1) {
      combine_attention_kernel<<<static_cast<unsigned>(rows * given.n_heads), combine_threads, 0,
                                 stream>>>(
          {args.results, kv.head_dim, args.window, args.positions, args.first_token, args.out});
      detail::count_launch();
    }
    if (alone) {
      args.first_token += rows;
      continue;
    }
    args.q += rows * args.q_stride;
    args.out.data = static_cast<char*>(args.out.data) +
                    rows * args.out.stride * static_cast<std::int64_t>(size_of(args.out.type));
    args.positions += rows;
    args.sequence_of += rows;
  }
}

void run(device& dev, const ragged_batch& batch, const attention_args& given) {
  const decode_heads heads{given.n_heads, given.kv.n_kv_heads, given.kv.head_dim};
  const bool prefills =
      prefill_takes(given.kv) && prefill_pays(heads, batch.n_tokens, batch.n_sequences);
  if (prefills) run_prefill(dev, batch, given, heads);
  // If prefill attention runs and the step has a single sequence, that sequence has several rows
  // and nothing is left for decode attention.
  if (!prefills || batch.n_sequences > 1) run_decode(dev, batch, given, heads, prefills);
}

} // namespace

constinit const detail::attention_backend attention{
    scratch_bytes, {run, supports}, {}, {}}; // the portable implementation packs KV4

} // namespace twill::gpu::cuda
