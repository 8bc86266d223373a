#include "gpu/linear/linear.hpp"

#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/linear/detail/backend.hpp"
#include "gpu/linear/detail/packed_form.hpp"
#include "gpu/rows/elementwise.hpp"

namespace twill::gpu {

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

} // namespace twill::gpu
