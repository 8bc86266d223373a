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
  std::function<void(std::int64_t turn)> run;
};

/// `turns` is the number of matrices that take turns.
void measure_at(const kernel_selection& selection, std::int64_t m, std::int64_t n,
                std::int32_t turns, const std::vector<row_op>& ops,
                const std::function<void(const kernel_case&)>& measure) {
  std::int64_t turn = 0;
  for (const row_op& op : ops) {
    kernel_case c;
    c.op = op.name;
    c.shape = std::to_string(m) + " x " + std::to_string(n);
    c.bytes = op.passes * 4 * static_cast<double>(m * n);
    c.operations = op.operations * static_cast<double>(m * n);
    c.turn = turns;
    c.run = [&] { op.run(turn++ % turns); };
    if (selected(selection, c)) measure(c);
  }
}

/// The number of matrices of `bytes` bytes that successive runs use in turn. It is 1 on a host,
/// because in a model the op before leaves the matrix in a cache there.
std::int32_t turns_on(const gpu::device& dev, const kernel_selection& selection, double bytes) {
  return dev.memory_is_host() ? 1 : turns_of(selection, bytes);
}

void measure_rows(gpu::device& dev, const kernel_selection& selection, std::int64_t m,
                  std::int64_t n, const std::function<void(const kernel_case&)>& measure) {
  const std::int32_t turns = turns_on(dev, selection, 8.0 * static_cast<double>(m * n));
  const device_floats x(dev, turns * m * 2 * n, 0.3F), out(dev, turns * m * n, 0);
  const device_floats weight(dev, n, 1);
  const auto in = [&](std::int64_t turn) { return x.matrix(m, n, turn * m * n); };
  const auto pair = [&](std::int64_t turn) { return x.matrix(m, 2 * n, turn * m * 2 * n); };
  const auto to = [&](std::int64_t turn) { return out.matrix(m, n, turn * m * n); };
  measure_at(selection, m, n, turns,
             {{"rms_norm", 3, 4,
               [&](std::int64_t t) { gpu::rms_norm(dev, in(t), weight.data(), 1e-5F, to(t)); }},
              {"layer_norm", 4, 6,
               [&](std::int64_t t) {
                 gpu::layer_norm(dev, in(t), weight.data(), weight.data(), 1e-5F, to(t));
               }},
              {"head_norm", 3, 4,
               [&](std::int64_t t) { gpu::head_norm(dev, to(t), 8, weight.data(), 1e-5F); }},
              {"silu_mul", 3, 20, [&](std::int64_t t) { gpu::silu_mul(dev, pair(t), to(t)); }},
              {"gelu", 2, 20, [&](std::int64_t t) { gpu::activate(dev, to(t), activation::gelu); }},
              {"gelu_tanh", 2, 20,
               [&](std::int64_t t) { gpu::activate(dev, to(t), activation::gelu_tanh); }},
              {"relu", 2, 1, [&](std::int64_t t) { gpu::activate(dev, to(t), activation::relu); }}},
             measure);
}

} // namespace

void for_each_row_case(gpu::device& dev, const kernel_selection& selection,
                       const std::function<void(const kernel_case&)>& measure) {
  const auto rows = selection.rows.empty() ? std::vector<std::int64_t>{1, 16, 256} : selection.rows;
  for (const std::int64_t m : rows)
    where_memory_suffices("ops on rows", [&] {
      measure_rows(dev, selection, m, selection.small ? 64 : 5120, measure);
    });
  const std::int64_t vocab = selection.small ? 100 : 125696;
  const std::int32_t turns = turns_on(dev, selection, 4.0 * static_cast<double>(vocab));
  const device_floats logits(dev, turns * vocab, 0.1F);
  const gpu::buffer token = to_device(dev, std::vector<std::int32_t>{0});
  measure_at(selection, 1, vocab, turns,
             {{"argmax", 1, 1,
               [&](std::int64_t turn) {
                 gpu::argmax(dev, logits.matrix(1, vocab, turn * vocab),
                             static_cast<std::int32_t*>(token.data()));
               }}},
             measure);
}

} // namespace twill::bench
