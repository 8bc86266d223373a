#include "gpu/ops/linear.hpp"

#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/detail/launch.hpp"
#include "gpu/detail/linear_impl.hpp"
#include "gpu/detail/packed_form.hpp"
#include "gpu/ops/elementwise.hpp"

namespace twill::gpu {

const char* name_of(compute_type t) {
  switch (t) {
  case compute_type::f32:
    return "f32";
  case compute_type::bf16:
    return "bf16";
  case compute_type::int8:
    return "int8";
  case compute_type::int8x2:
    return "int8x2";
  case compute_type::w8a8:
    break;
  }
  return "w8a8";
}

const char* name_of(weight_kind k) {
  switch (k) {
  case weight_kind::f32:
    return "f32";
  case weight_kind::f16:
    return "f16";
  case weight_kind::bf16:
    return "bf16";
  case weight_kind::grouped_u4:
    return "grouped_u4";
  case weight_kind::grouped_u8:
    return "grouped_u8";
  case weight_kind::grouped_u4_as_u8:
    break;
  }
  return "grouped_u4_as_u8";
}

packed_matrix::packed_matrix() = default;
packed_matrix::packed_matrix(packed_matrix&&) noexcept = default;
packed_matrix& packed_matrix::operator=(packed_matrix&&) noexcept = default;
packed_matrix::~packed_matrix() = default;

std::int64_t packed_matrix::rows() const {
  return impl_ ? impl_->view.rows : 0;
}
std::int64_t packed_matrix::cols() const {
  return impl_ ? impl_->view.cols : 0;
}
std::int64_t packed_matrix::bytes() const {
  if (!impl_) return 0;
  return static_cast<std::int64_t>(impl_->codes.device.bytes() + impl_->scales.device.bytes() +
                                   impl_->order.device.bytes());
}

namespace {

bool runs_on_host_kernels(const detail::packed_view& w, compute_type compute) {
  return detail::on_host && detail::has_host_kernel(w, compute);
}

void check_linear(const linear_args& args) {
  TWILL_ASSERT(args.weights != nullptr && args.weights->readable(), "linear: no weights");
  const detail::packed_view& w = args.weights->get().view;
  TWILL_ASSERT(args.x.type == dtype::f32 && args.out.type == dtype::f32,
               "linear: x and out are f32");
  TWILL_ASSERT(args.x.rank == 2 && args.x.shape[1] == w.cols, "linear: x must be (m, cols)");
  TWILL_ASSERT(args.out.rank == 2 && args.out.shape[1] == w.rows &&
                   args.out.shape[0] == args.x.shape[0],
               "linear: out must be (m, rows)");
}

} // namespace

std::int64_t linear_scratch_bytes(const device& dev, const weight_source& source,
                                  compute_type compute, std::int64_t m) {
  const auto described = detail::describe(source, "a matrix");
  if (!described.ok()) return 0;
  const detail::packed_view& w = described.value();
  const bool ordered = source.column_order != nullptr;
  return runs_on_host_kernels(w, compute)
             ? detail::linear_host_scratch(w, ordered, compute, m, dev.info().threads)
             : detail::linear_generic_scratch(w, ordered, compute, m);
}

void linear(device& dev, const linear_args& args) {
  check_linear(args);
  if (args.x.rows() == 0) return;
  if (runs_on_host_kernels(args.weights->get().view, args.compute))
    detail::linear_host(dev, args);
  else
    detail::linear_generic(dev, args);
}

void linear_silu_mul(device& dev, const linear_args& args, tensor_ref out) {
  check_linear(args);
  TWILL_ASSERT(args.bias == nullptr && !args.accumulate,
               "linear_silu_mul: neither bias nor accumulate");
  TWILL_ASSERT(out.type == dtype::f32 && out.rank == 2 && out.shape[0] == args.x.shape[0] &&
                   2 * out.shape[1] == args.out.shape[1],
               "linear_silu_mul: out must be (m, rows / 2) f32");
  if (args.x.rows() == 0) return;
  if constexpr (detail::on_host)
    if (detail::linear_silu_mul_host(dev, args, out)) return;
  linear(dev, args);
  silu_mul(dev, args.out, out);
}

void embedding(device& dev, const packed_matrix& table, const std::int32_t* ids, tensor_ref out,
               bool accumulate) {
  TWILL_ASSERT(table.readable(), "embedding: no table");
  TWILL_ASSERT(table.get().column_order() == nullptr, "embedding: the table has a column order");
  const detail::packed_view w = table.get().view;
  TWILL_ASSERT(out.type == dtype::f32 && out.rank == 2 && out.shape[1] == w.cols,
               "embedding: out must be (n, cols) f32");
  auto* to = out.as<float>();
  const std::int64_t stride = out.row_stride;
  detail::for_spans(
      dev, "embedding", out.rows(), w.cols, 4,
      KOKKOS_LAMBDA(const long row, const long begin, const long end) {
        const std::int64_t id = ids[row];
        float* values = to + row * stride;
        if (id < 0 || id >= w.rows) { // no such token: never read outside the table
          for (long k = begin; k < end && !accumulate; ++k)
            values[k] = 0;
          return;
        }
        const auto put = [accumulate](float& to, float v) { to = accumulate ? to + v : v; };
        const std::int64_t block = id / detail::lanes;
        const std::int64_t lane = id % detail::lanes;
        if (!w.grouped()) {
          for (long k = begin; k < end; ++k)
            put(values[k], detail::dense_at(w, block, lane, k));
          return;
        }
        for (long k = begin; k < end;) {
          const long group = k / w.group;
          const long stop = (group + 1) * w.group < end ? (group + 1) * w.group : end;
          const detail::scale_offset t = detail::group_terms(w, block, lane, group);
          for (; k < stop; ++k) {
            const auto code = static_cast<float>(detail::code_at(w, block, lane, k));
            put(values[k], t.scale * code + t.offset);
          }
        }
      });
}

} // namespace twill::gpu
