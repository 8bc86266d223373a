#include "tools/twill-bench/kernels/row_cases.hpp"

#include "gpu/rows/elementwise.hpp"
#include "gpu/rows/norms.hpp"
#include "gpu/sampling/sample.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"

namespace twill::bench {

namespace {

using gpu::activation;

/// An op over a matrix; `passes` counts how often it reads or writes each element.
struct row_op {
  const char* name;
  double passes, operations; ///< per element
  std::function<void()> run;
};

void measure_at(const kernel_selection& selection, std::int64_t m, std::int64_t n,
                const std::vector<row_op>& ops,
                const std::function<void(const kernel_case&)>& measure) {
  for (const row_op& op : ops) {
    kernel_case c;
    c.op = op.name;
    c.shape = std::to_string(m) + " x " + std::to_string(n);
    c.bytes = op.passes * 4 * static_cast<double>(m * n);
    c.operations = op.operations * static_cast<double>(m * n);
    c.run = op.run;
    if (selected(selection, c)) measure(c);
  }
}

} // namespace

void for_each_row_case(gpu::device& dev, const kernel_selection& selection,
                       const std::function<void(const kernel_case&)>& measure) {
  const std::int64_t n = selection.small ? 64 : 5120;
  for (const std::int64_t m : selection.rows) {
    const device_floats x(dev, m * 2 * n, 0.3F), out(dev, m * n, 0), weight(dev, n, 1);
    const gpu::tensor_ref in = x.matrix(m, n), to = out.matrix(m, n);
    measure_at(selection, m, n,
               {{"rms_norm", 3, 4, [&] { gpu::rms_norm(dev, in, weight.data(), 1e-5F, to); }},
                {"layer_norm", 4, 6,
                 [&] { gpu::layer_norm(dev, in, weight.data(), weight.data(), 1e-5F, to); }},
                {"head_norm", 3, 4, [&] { gpu::head_norm(dev, to, 8, weight.data(), 1e-5F); }},
                {"silu_mul", 3, 20, [&] { gpu::silu_mul(dev, x.matrix(m, 2 * n), to); }},
                {"gelu", 2, 20, [&] { gpu::activate(dev, to, activation::gelu); }},
                {"gelu_tanh", 2, 20, [&] { gpu::activate(dev, to, activation::gelu_tanh); }},
                {"relu", 2, 1, [&] { gpu::activate(dev, to, activation::relu); }}},
               measure);
  }
  const std::int64_t vocab = selection.small ? 100 : 125696;
  const device_floats logits(dev, vocab, 0.1F);
  const gpu::buffer token = to_device(dev, std::vector<std::int32_t>{0});
  measure_at(selection, 1, vocab,
             {{"argmax", 1, 1,
               [&] {
                 gpu::argmax(dev, logits.matrix(1, vocab),
                             static_cast<std::int32_t*>(token.data()));
               }}},
             measure);
}

} // namespace twill::bench
