#include "tools/twill-bench/kernels/paper/targets.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "tools/twill-bench/kernels/paper/counts.hpp"
#include "tools/twill-bench/kernels/paper/decode_step.hpp"

namespace twill::bench::paper {

namespace {

std::span<const seed_layer> seeds() {
  return {seed_layers, n_paper_seeds};
}

struct layer_time {
  double bytes = 0, seconds = 0;
};

/// The time of the products of one layer.
layer_time products(const card& on, const seed_layer& seed, std::int64_t rows,
                    weight_format format) {
  layer_time sum;
  for (const product_shape& product : seed.products()) {
    const step_kernel k = product_of_step(on, seed, product, rows, format);
    sum.bytes += k.dram_bytes;
    sum.seconds += k.one.seconds;
  }
  return sum;
}

/// Operations per second of a layer's products with the rows of a prompt.
double prompt_rate(const card& on, const seed_layer& seed, std::int64_t rows) {
  double operations = 0, seconds = 0;
  for (const product_shape& p : seed.products()) {
    operations += 2.0 * static_cast<double>(rows * p.cols * p.rows);
    seconds += predict(on, prompt_product_counts(on, seed, p, rows)).seconds;
    if (seed.int8) seconds += predict(on, rounding_counts(on, rows, p.cols)).seconds;
  }
  return operations / seconds;
}

/// The time of attention, including the launch that combines its chunks.
layer_time attention(const card& on, const seed_layer& seed, std::int64_t rows,
                     std::int64_t positions) {
  const step_kernel k = attention_of_step(on, seed, rows, positions);
  return {k.dram_bytes, k.one.seconds + combine_of_step(seed, positions).one.seconds};
}

/// The target for the matrix product of the seed models (seed_layers.hpp) that loses the largest
/// share of its time to a partly filled last wave or to idle multiprocessors.
target wave_loss(const card& on, std::string what, std::span<const std::int64_t> row_counts) {
  target worst{std::move(what), "none", 0, 0.10, unit::share, true};
  for (const seed_layer& seed : seeds())
    for (const product_shape& product : seed.products())
      for (const std::int64_t rows : row_counts) {
        const double loss = product_of_step(on, seed, product, rows, format_of(seed)).one.wave_loss;
        if (loss <= worst.figure) continue;
        worst.figure = loss;
        worst.where = std::string(seed.name) + " " + product.name + ", " + std::to_string(rows) +
                      (rows == 1 ? " row" : " rows");
      }
  return worst;
}

} // namespace

std::vector<target> targets_of(const card& on) {
  const bool hopper = on.mma_share < 1;
  const double bandwidth = hopper ? on.read_bytes_per_s() : on.dram_bytes_per_s;
  const std::string of = hopper ? "of a reading kernel" : "of DRAM bandwidth";
  const auto share = [&](const layer_time& t) { return t.bytes / t.seconds / bandwidth; };
  std::vector<target> list;

  for (const seed_layer& seed : seeds())
    if (seed.group == 0)
      list.push_back({"16 bits, 1 row: " + of, seed.name,
                      share(products(on, seed, 1, format_of(seed))), hopper ? 0.80 : 0.85});
    else
      list.push_back({"4 bits, 1 row: " + of, seed.name,
                      share(products(on, seed, 1, format_of(seed))), hopper ? 0.50 : 0.70});
  for (const seed_layer& layer : gguf_layers)
    list.push_back({"8 bits, 1 row: " + of, layer.name,
                    share(products(on, layer, 1, format_of(layer))), hopper ? 0.50 : 0.70});
  for (const seed_layer& seed : seeds()) {
    if (seed.group == 0) continue;
    target least{"4 bits over 16 bits, to 16 rows", "", 0, hopper ? 2.0 : 3.0, unit::factor};
    for (const std::int64_t rows : {1, 8, 16}) {
      const double factor = products(on, seed, rows, {16, 0}).seconds /
                            products(on, seed, rows, format_of(seed)).seconds;
      if (!least.where.empty() && factor >= least.figure) continue;
      least.figure = factor;
      least.where = std::string(seed.name) + ", least at " + std::to_string(rows);
    }
    list.push_back(least);
    if (hopper)
      list.push_back({"4 bits, 32 rows over 8", seed.name,
                      products(on, seed, 32, format_of(seed)).seconds /
                          products(on, seed, 8, format_of(seed)).seconds,
                      1.3, unit::factor, true});
  }
  const auto prompt = [&](const seed_layer& layer) {
    list.push_back({"prompt of 2048: of the tensor rate", layer.name,
                    prompt_rate(on, layer, 2048) / (2 * on.tensor_fma_per_s),
                    hopper ? 0.45 : 0.60});
  };
  for (const seed_layer& seed : seeds())
    prompt(seed);
  for (const seed_layer& layer : gguf_layers)
    prompt(layer);
  list.push_back({"prompt of 2048: of the int8 rate", w8a8_layer.name,
                  prompt_rate(on, w8a8_layer, 2048) / (4 * on.tensor_fma_per_s), 0.45});
  const std::int64_t positions = hopper ? 4096 : 2048;
  for (const seed_layer& seed : seeds()) {
    const std::string at = std::string(seed.name) + ", " + std::to_string(positions) + " positions";
    for (const std::int64_t rows : {1, 32}) {
      const layer_time t = attention(on, seed, rows, positions);
      const std::string n =
          "attention, " + std::to_string(rows) + (rows == 1 ? " row: " : " rows: ");
      if (hopper && rows == 1)
        list.push_back({n + "us", at, t.seconds * 1e6, 25, unit::us, true});
      else
        list.push_back({n + of, at, share(t), 0.60});
    }
  }
  constexpr std::int64_t few[] = {1, 8, 16}, many[] = {32};
  list.push_back(wave_loss(on, "lost to waves, to 16 rows", few));
  list.push_back(wave_loss(on, "lost to waves, 32 rows", many));
  return list;
}

} // namespace twill::bench::paper
