// The host implementation of linear(): divides a layer into tiles (some outputs for some rows of
// activations) for the micro-kernels, which the device's threads run. Activations are first
// prepared, that is, rounded or quantised for the compute type. With few rows, one launch both
// prepares the activations and multiplies.
#include <algorithm>
#include <array>
#include <cstring>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/host/thread_pool.hpp"
#include "gpu/linear/host/kernels.hpp"

namespace twill::gpu::detail {

namespace {

/// Up to about this many activations, it is cheaper if every thread rounds or quantises all rows
/// for itself than if a separate launch does so once.
constexpr std::int64_t prepare_in_place = 8192;
/// The most rows of a tile; the rows of a tile share each unpacked row panel (16 outputs). Tiles
/// have more than tile_rows only where there are enough tiles for every thread.
constexpr std::int64_t most_tile_rows = host::int8_gemm_max_rows, tile_rows = most_tile_rows / 2;
/// Rows up to which a layer is bound by reading its weights.
constexpr std::int64_t few_rows = 16;
/// Bytes of weights of a tile: about half of a core's second-level cache.
constexpr std::int64_t tile_bytes = 256 << 10;

std::int64_t align64(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// The layout in scratch memory of a call's activations, prepared (rounded or quantised) for its
/// compute type.
class prepared_rows {
public:
  /// `ordered` says whether the weights have a column order.
  prepared_rows(const packed_view& w, bool ordered, compute_type compute)
      : w_(w), ordered_(ordered), compute_(compute) {
    if (compute == compute_type::f32 && ordered) {
      values_stride_ = align64(w.cols * 4) / 4;
    } else if (int8()) {
      code_bytes_ = align64(w.cols);
      values_stride_ = code_bytes_ * (with_residual() ? 2 : 1);
      segments_ = w.cols / w.segment;
    } else if (compute == compute_type::bf16) {
      values_stride_ = align64(w.padded_cols * 2) / 2;
    }
  }
  std::int64_t bytes(std::int64_t m) const {
    switch (compute_) {
    case compute_type::f32:
      return m * values_stride_ * 4;
    case compute_type::f16: // computed by the portable implementation
    case compute_type::bf16:
      return m * values_stride_ * 2;
    case compute_type::int8:
    case compute_type::int8x2:
    case compute_type::w8a8: // has been replaced by int8
      return m * values_stride_ + params_bytes(m) + align64(m * segments_);
    }
    return 0;
  }
  host::quantised_rows quantised(unsigned char* at, std::int64_t m) const {
    unsigned char* params = at + m * values_stride_;
    return {reinterpret_cast<std::int8_t*>(at),
            reinterpret_cast<host::segment_params*>(params),
            values_stride_,
            segments_,
            with_residual() ? code_bytes_ : 0,
            with_residual() ? m * segments_ : 0,
            params + params_bytes(m)};
  }
  host::bf16_rows rounded(unsigned char* at) const {
    return {reinterpret_cast<std::uint16_t*>(at), values_stride_};
  }
  /// Bytes of temporary memory that one thread needs while it fills rows.
  std::int64_t fill_bytes() const {
    return ordered_ && compute_ != compute_type::f32 ? align64(w_.cols * 4) : 0;
  }

  /// Reorders, rounds or quantises rows [first, end) of x, as the compute type requires, into the
  /// buffer at `at`, which has room for m such rows. `row_space` is workspace of fill_bytes()
  /// bytes. `order` is the weights' column order, or null.
  void fill(const host::kernels& k, const std::int32_t* order, unsigned char* at, std::int64_t m,
            const tensor_ref& x, std::int64_t first, std::int64_t end,
            unsigned char* row_space) const {
    for (std::int64_t row = first; row < end; ++row) {
      const float* from = x.as<const float>() + row * x.row_stride;
      if (order != nullptr) {
        auto* gathered = reinterpret_cast<float*>(row_space);
        if (compute_ == compute_type::f32)
          gathered = reinterpret_cast<float*>(at) + row * values_stride_;
        for (std::int64_t c = 0; c < w_.cols; ++c)
          gathered[c] = from[order[c]];
        from = gathered;
      }
      if (int8())
        k.quantise(w_, from, quantised(at, m), row);
      else if (compute_ == compute_type::bf16)
        k.round_bf16(w_, from, rounded(at), row);
    }
  }
  /// Runs a tile; rows of the weights before `residual_from` are multiplied without the residual.
  void run(const host::kernels& k, host::tile t, unsigned char* at, std::int64_t m,
           const tensor_ref& x, std::int64_t first_row, std::int64_t residual_from) const {
    if (compute_ == compute_type::f32) {
      const float* values = ordered_ ? reinterpret_cast<float*>(at) : x.as<const float>();
      const std::int64_t stride = ordered_ ? values_stride_ : x.row_stride;
      return k.tile_f32(t, values + first_row * stride, stride);
    }
    if (compute_ == compute_type::bf16) {
      host::bf16_rows rows = rounded(at);
      rows.values += first_row * rows.values_stride;
      return k.tile_bf16(t, rows);
    }
    host::quantised_rows rows = quantised(at, m);
    rows.values += first_row * rows.values_stride;
    rows.params += first_row * segments_;
    rows.has_residual += first_row * segments_;
    const std::int64_t from = std::min(t.end_panel, residual_from / lanes);
    if (with_residual() && t.first_panel < from) {
      host::tile plain = t;
      plain.end_panel = from;
      host::quantised_rows codes = rows;
      codes.residual_values = codes.residual_params = 0;
      k.tile_int8(plain, codes);
      t.first_panel = from;
    }
    if (t.first_panel < t.end_panel) k.tile_int8(t, rows);
  }

private:
  std::int64_t params_bytes(std::int64_t m) const {
    const std::int64_t sets = with_residual() ? 2 : 1;
    return align64(m * segments_ * sets * static_cast<std::int64_t>(sizeof(host::segment_params)));
  }
  bool with_residual() const { return compute_ == compute_type::int8x2; }
  bool int8() const { return is_int8(compute_); }

  const packed_view& w_;
  bool ordered_;
  compute_type compute_;
  std::int64_t values_stride_ = 0;
  std::int64_t segments_ = 0;
  std::int64_t code_bytes_ = 0; ///< of one row, without its residual
};

/// Bytes of a thread's buffer for unpacked weights; 0 where none is needed.
std::int64_t pack_size(const packed_view& w, compute_type compute, std::int64_t m) {
  if (is_int8(compute)) return m <= host::int8_gemv_rows(w.kind) ? 0 : host::int8_pack_bytes;
  if (m <= host::float_gemv_rows) return 0;
  const weight_kind as_is = compute == compute_type::f32 ? weight_kind::f32 : weight_kind::bf16;
  return w.kind == as_is ? 0 : w.padded_cols * 64;
}

/// The layout of a call's scratch memory: the prepared (rounded or quantised) rows, either shared
/// or one copy per thread; then for each thread a buffer for preparing a row, a buffer for unpacked
/// weights and, where each thread prepares its own copy, a flag that says whether the copy is
/// ready.
struct scratch_layout {
  scratch_layout(const packed_view& w, const prepared_rows& prepared, compute_type compute,
                 std::int64_t m, std::int64_t n_threads)
      : threads(n_threads), in_place(m * w.cols <= prepare_in_place),
        rows(align64(prepared.bytes(m))), fill(prepared.fill_bytes()),
        pack(pack_size(w, compute, m)), flag(in_place ? 64 : 0) {}
  std::int64_t all_rows() const { return in_place ? rows * threads : rows; }
  std::int64_t bytes() const { return all_rows() + (fill + pack + flag) * threads; }

  std::int64_t threads;
  bool in_place;
  std::int64_t rows, fill, pack, flag; ///< bytes
};

std::array<host::thread_pool::range, 2> ranges_of(const packed_matrix::impl& w) {
  if (w.view.codes == nullptr) return {}; // a matrix that has not been placed
  return {host::thread_pool::range{w.view.codes, w.codes.bytes},
          host::thread_pool::range{w.view.scales, w.scales.bytes}};
}

/// `out` is args.out or, if `gated`, a tensor of half the width that receives silu_mul() of the
/// product.
void run_linear(device& dev, const linear_args& args, const tensor_ref& out, bool gated) {
  const packed_view& w = args.weights->get().view;
  const host::kernels& k = host::kernels_for(dev.isa());
  const compute_type compute = effective_compute(w, args.compute);
  const std::int64_t m = args.x.rows();
  const std::int32_t* order = args.weights->get().column_order();
  const prepared_rows rows(w, order != nullptr, compute);
  const std::int64_t threads = dev.info().threads;
  const scratch_layout layout(w, rows, compute, m, threads);
  auto* scratch =
      static_cast<unsigned char*>(dev.scratch(static_cast<std::size_t>(layout.bytes())));
  unsigned char* fill_space = scratch + layout.all_rows();
  unsigned char* packs = fill_space + layout.fill * threads;
  unsigned char* filled = packs + layout.pack * threads;

  if (layout.in_place)
    std::memset(filled, 0, static_cast<std::size_t>(layout.flag * threads));
  else if (layout.rows > 0)
    dev.pool().run(threads, [&](std::int64_t part, std::int32_t thread) {
      rows.fill(k, order, scratch, m, args.x, m * part / threads, m * (part + 1) / threads,
                fill_space + thread * layout.fill);
    });

  // Tiles are ordered by rows first, so that a thread's share of the tiles has the rows that the
  // thread prepared and will read in the next op. With few rows, a thread's share is a long
  // contiguous run of weights, which is read fastest.
  const std::int64_t row_tiles = std::max((m + most_tile_rows - 1) / most_tile_rows,
                                          std::min(threads, (m + tile_rows - 1) / tile_rows));
  const auto first_of =
      [&](std::int64_t row_tile) { // rows are divided evenly, into whole groups of the micro-kernel
        const std::int64_t even = m * row_tile / row_tiles;
        return std::min(m, (even + host::int8_gemm_rows - 1) / host::int8_gemm_rows *
                               host::int8_gemm_rows);
      };
  const std::int64_t weight_bytes = w.panels * (w.codes_stride + w.scales_stride);
  // Every thread gets the same number of tiles (several, with many rows); otherwise some threads
  // would be idle while the last tiles are computed.
  const std::int64_t rounds = std::max<std::int64_t>(
      (weight_bytes + tile_bytes * threads - 1) / (tile_bytes * threads), m > few_rows ? 16 : 1);
  // Row panels that the micro-kernel multiplies together stay in one tile.
  const bool pairs = layout.pack > 0 && is_int8(compute) && !gated;
  const std::int64_t together = pairs ? host::int8_gemm_panels : 1;
  const std::int64_t panels = gated ? w.panels / 2 : w.panels;
  const std::int64_t cuts = (panels + together - 1) / together;
  const std::int64_t panel_tiles = std::min(rounds * threads, cuts);

  dev.pool().read_ahead(args.next == nullptr ? std::array<host::thread_pool::range, 2>{}
                                             : ranges_of(args.next->get()));
  dev.pool().run(row_tiles * panel_tiles, [&](std::int64_t i, std::int32_t thread) {
    unsigned char* mine = layout.in_place ? scratch + thread * layout.rows : scratch;
    if (layout.in_place && filled[thread * layout.flag] == 0) {
      rows.fill(k, order, mine, m, args.x, 0, m, fill_space + thread * layout.fill);
      filled[thread * layout.flag] = 1;
    }
    const std::int64_t column = i % panel_tiles;
    const std::int64_t first_row = first_of(i / panel_tiles);
    host::tile t;
    t.weights = &w;
    t.first_panel = cuts * column / panel_tiles * together;
    t.end_panel = std::min(cuts * (column + 1) / panel_tiles * together, panels);
    t.m = first_of(i / panel_tiles + 1) - first_row;
    t.out = out.as<float>() + first_row * out.row_stride;
    t.out_stride = out.row_stride;
    t.gate_panels = gated ? panels : 0;
    t.bias = args.bias;
    t.accumulate = args.accumulate;
    t.pack = layout.pack > 0 ? packs + thread * layout.pack : nullptr;
    rows.run(k, t, mine, m, args.x, first_row, args.residual_from);
  });
}

/// No micro-kernel computes in f16. grouped_u4_as_u8 weights (weight_kind.hpp) and scales and
/// offsets in 16-bit integers (int16 quant params) have micro-kernels for int8 compute only.
bool supports(const packed_view& w, compute_type asked) {
  if (asked == compute_type::f16) return false;
  const bool for_int8 = w.kind == weight_kind::grouped_u4_as_u8 || w.int16_quant_params;
  return !for_int8 || effective_compute(w, asked) == compute_type::int8;
}

std::int64_t scratch_bytes(const device& dev, const packed_view& w, bool ordered,
                           compute_type asked, std::int64_t m) {
  const compute_type compute = effective_compute(w, asked);
  const std::int64_t threads = dev.info().threads;
  const prepared_rows rows(w, ordered, compute);
  // Scratch memory grows with the number of rows, but drops once: up to most_in_place rows, every
  // thread rounds or quantises the rows for itself; more rows are rounded or quantised only once,
  // for all threads.
  const std::int64_t most_in_place = std::min(m, prepare_in_place / w.cols);
  return std::max(scratch_layout(w, rows, compute, m, threads).bytes(),
                  scratch_layout(w, rows, compute, most_in_place, threads).bytes());
}

void run(device& dev, const linear_args& args) {
  run_linear(dev, args, args.out, false);
}

bool run_silu_mul(device& dev, const linear_args& args, tensor_ref out) {
  const packed_view& w = args.weights->get().view;
  const bool whole_panels = w.rows % (2 * lanes) == 0;
  // With few rows, alternating between two streams of weights (the gate and the half it multiplies)
  // is slower than reading one stream.
  if (!host::kernels_for(dev.isa()).gates || !whole_panels || args.x.rows() <= few_rows ||
      !is_int8(effective_compute(w, args.compute)))
    return false;
  run_linear(dev, args, out, true);
  return true;
}

} // namespace

constinit const linear_backend host_linear{supports, scratch_bytes, run, run_silu_mul};

} // namespace twill::gpu::detail
