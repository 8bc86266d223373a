// Times of the kernels behind linear(), at the shapes of models' layers.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/launch_timer.hpp"
#include "tools/gpu-kernels/linear_kernels.hpp"
#include "tools/twill-bench/kernels/product.hpp"

namespace twill::gpu_kernels {

namespace {

/// Times the four matrix products of a layer together with 1, 8 and 32 rows of activations and with
/// the rows of a prompt. Times each product alone with 1 row and with the rows of a prompt.
void measure_layer(gpu::device& dev, const options& given, const bench::seed_layer& seed,
                   results& out) {
  const gpu::compute_type compute = compute_of(dev, seed);
  const std::string kernel = kernel_name(gpu::name_of(seed.kind), compute);
  const std::int64_t prompt_rows = given.small ? 64 : 2048;
  bench::kernel_selection turns;
  turns.small = given.small;
  turns.bytes_in_turn = 4 * gpu::cache_bytes(dev);
  std::vector<std::unique_ptr<bench::product>> made;
  for (const bench::product_shape& s : seed.products()) {
    if (!takes(dev, seed, s, compute)) return;
    made.push_back(std::make_unique<bench::product>(dev, turns, source_of(seed, s), prompt_rows));
  }
  const auto time = [&](const std::string& shape, const bench::kernel_case& of) {
    if (chosen(given, kernel, shape))
      out.timed({kernel, shape, of.bytes, of.operations,
                 gpu::time_launches(dev, {.turn = of.turn, .graphs = given.graphs}, of.run)});
  };
  for (const std::int64_t m : {std::int64_t{1}, std::int64_t{8}, std::int64_t{32}, prompt_rows}) {
    const std::string rows = " x " + std::to_string(m);
    bench::kernel_case layer;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const bench::kernel_case one = made[i]->measured(m, compute);
      layer.bytes += one.bytes;
      layer.operations += one.operations;
      if (m == 1 || m == prompt_rows) time(shape_of(seed, seed.products()[i]) + rows, one);
    }
    layer.turn = bench::turns_of(turns, layer.bytes);
    layer.run = [&] {
      for (const auto& one : made)
        one->run(m, compute);
    };
    time(std::string(seed.name) + " layer" + rows, layer);
  }
}

} // namespace

void measure_linear(gpu::device& dev, const options& given, results& out) {
  for (const bench::seed_layer& seed : layers_of(given))
    measure_layer(dev, given, seed, out);
}

} // namespace twill::gpu_kernels
