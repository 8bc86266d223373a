#include "gpu/linear/linear.hpp"

#include <algorithm>

#include "gpu/detail/activation_element.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/linear/detail/packed_form.hpp"
#include "gpu/rows/elementwise.hpp"

namespace twill::gpu {

namespace {

/// `halves`: x has 16 bits.
const detail::linear_backend& backend_for(const device& dev, const detail::packed_view& w,
                                          compute_type compute, bool halves) {
  const auto& own = dev.ops().get<detail::linear_backend>();
  const bool supported = own.supports(w, compute) && (own.reads_halves || !halves);
  return supported ? own : dev.ops().portable->get<detail::linear_backend>();
}

const detail::linear_backend& backend_for(const device& dev, const linear_args& args) {
  return backend_for(dev, args.weights->get().view, args.compute, args.x.type != dtype::f32);
}

void check_linear(const linear_args& args) {
  TWILL_ASSERT(args.weights != nullptr && args.weights->readable(), "linear: no weights");
  const detail::packed_view& w = args.weights->get().view;
  TWILL_ASSERT(args.x.type == dtype::f32 || args.x.type == detail::element_of(args.compute),
               "linear: x is f32 or of the compute type");
  TWILL_ASSERT(args.out.type == dtype::f32, "linear: out is f32");
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
  const auto bytes_for = [&](bool halves) {
    return backend_for(dev, w, compute, halves)
        .scratch_bytes(dev, w, source.column_order != nullptr, compute, m);
  };
  const bool either = dev.info().half_activations && detail::element_of(compute) != dtype::f32;
  return either ? std::max(bytes_for(false), bytes_for(true)) : bytes_for(false);
}

void linear(device& dev, const linear_args& args) {
  check_linear(args);
  if (args.x.rows() == 0) return;
  backend_for(dev, args).run(dev, args);
}

void linear_silu_mul(device& dev, const linear_args& args, tensor_ref out) {
  check_linear(args);
  TWILL_ASSERT(args.bias == nullptr && !args.accumulate,
               "linear_silu_mul: neither bias nor accumulate");
  TWILL_ASSERT(detail::is_activation_type(out.type) && out.rank == 2 &&
                   out.shape[0] == args.x.shape[0] && 2 * out.shape[1] == args.out.shape[1],
               "linear_silu_mul: out must be (m, rows / 2) f32, f16 or bf16");
  if (args.x.rows() == 0) return;
  const detail::linear_backend& backend = backend_for(dev, args);
  const bool floats = args.x.type == dtype::f32 && out.type == dtype::f32;
  const bool takes = backend.run_silu_mul != nullptr && (floats || backend.reads_halves);
  if (takes && backend.run_silu_mul(dev, args, out)) return;
  linear(dev, args);
  silu_mul(dev, args.out, out);
}

} // namespace twill::gpu
