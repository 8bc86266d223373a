#include <algorithm>
#include <iterator>
#include <memory>
#include <span>

#include "tools/twill-bench/kernels/linear_cases.hpp"
#include "tools/twill-bench/kernels/product.hpp"
#include "tools/twill-bench/kernels/seed_layers.hpp"

namespace twill::bench {

namespace {

using gpu::compute_type;

/// The matrix products of one layer of a model. Their matrices are made when the first case that
/// needs them is selected.
class layer {
public:
  layer(gpu::device& dev, const kernel_selection& selection, const seed_layer& seed,
        std::int64_t most_rows)
      : dev_(dev), selection_(selection), seed_(seed), most_rows_(most_rows) {}

  void measure(compute_type compute, std::int64_t m,
               const std::function<void(const kernel_case&)>& measure) {
    const std::string of = std::string(" ") + seed_.name + " " + weights_name();
    std::string shape = std::to_string(m) + (m == 1 ? " row:" : " rows:");
    const auto products = seed_.products();
    for (std::size_t i = 0; i < products.size(); ++i) {
      kernel_case c;
      c.op = std::string("product ") + products[i].name + of + " " + name_of(compute);
      c.shape = product_shape_text(m, products[i].cols, products[i].rows);
      shape += (i == 0 ? " " : " + ") + std::string(products[i].name);
      if (!selected(selection_, c)) continue;
      kernel_case made = at(i).measured(m, compute);
      made.op = c.op;
      measure(made);
    }
    kernel_case all;
    all.op = "layer" + of + " " + name_of(compute);
    all.shape = shape;
    all.compute = compute;
    if (!selected(selection_, all)) return;
    for (std::size_t i = 0; i < products.size(); ++i) {
      const kernel_case one = at(i).measured(m, compute);
      all.bytes += one.bytes;
      all.operations += one.operations;
    }
    all.turn = turns_of(selection_, all.bytes);
    all.run = [this, m, compute] {
      for (const auto& one : made_)
        one->run(m, compute);
    };
    measure(all);
  }

private:
  std::string weights_name() const {
    return seed_.group > 0 ? "u4/" + std::to_string(seed_.group) : gpu::name_of(seed_.kind);
  }
  product& at(std::size_t i) {
    if (!made_[i]) {
      const product_shape s = seed_.products()[i];
      const weight_form form{"", seed_.kind, seed_.group, param_values::zeros};
      made_[i] = std::make_unique<product>(dev_, selection_, make_source(form, s.rows, s.cols),
                                           most_rows_);
    }
    return *made_[i];
  }

  gpu::device& dev_;
  const kernel_selection& selection_;
  const seed_layer& seed_;
  std::int64_t most_rows_;
  std::array<std::unique_ptr<product>, 4> made_;
};

} // namespace

void for_each_layer_case(gpu::device& dev, const kernel_selection& selection,
                         const std::function<void(const kernel_case&)>& measure) {
  const auto rows = selection.rows.empty() ? std::vector<std::int64_t>{1, 8, 32} : selection.rows;
  const std::span<const seed_layer> seeds =
      selection.small ? std::span<const seed_layer>(small_seed_layers) : seed_layers;
  for (const seed_layer& seed : seeds)
    where_memory_suffices(std::string("the layer of ") + seed.name, [&] {
      layer one(dev, selection, seed, *std::max_element(rows.begin(), rows.end()));
      const compute_type first = seed.group > 0 ? compute_type::int8 : compute_type::f32;
      const bool f16 = dev.info().multiplies_f16 && seed.kind != gpu::weight_kind::bf16;
      for (const compute_type compute : {first, f16 ? compute_type::f16 : compute_type::bf16})
        for (const std::int64_t m : rows)
          one.measure(compute, m, measure);
    });
}

} // namespace twill::bench
