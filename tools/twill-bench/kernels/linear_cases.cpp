#include "tools/twill-bench/kernels/linear_cases.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "tools/twill-bench/kernels/product.hpp"

namespace twill::bench {

namespace {

using gpu::compute_type;
using gpu::weight_kind;

constexpr weight_form forms[] = {
    {"u4/128 zeros", weight_kind::grouped_u4, 128, param_values::zeros},
    {"u4/64 zeros", weight_kind::grouped_u4, 64, param_values::zeros},
    {"u4/32 factored", weight_kind::grouped_u4, 32, param_values::factored},
    {"u4/32 halves", weight_kind::grouped_u4, 32, param_values::halves},
    {"u4/32 integers", weight_kind::grouped_u4, 32, param_values::integers},
    {"u4/32 floats", weight_kind::grouped_u4, 32, param_values::floats},
    {"u4/16 floats", weight_kind::grouped_u4, 16, param_values::floats},
    {"u8/128 zeros", weight_kind::grouped_u8, 128, param_values::zeros},
    {"u8/32 floats", weight_kind::grouped_u8, 32, param_values::floats},
    {"u8/32 factored", weight_kind::grouped_u8, 32, param_values::factored},
    {"u8/16 float scales", weight_kind::grouped_u8, 16, param_values::float_scales},
    {"u8/192 factored", weight_kind::grouped_u8, 192, param_values::factored},
    {"u4 as u8/192 of 32", weight_kind::grouped_u4_as_u8, 192, param_values::factored, 32},
    {"u4 as u8/256 of 128", weight_kind::grouped_u4_as_u8, 256, param_values::factored, 128},
    {"bf16", weight_kind::bf16, 0, param_values::factored},
    {"f16", weight_kind::f16, 0, param_values::factored},
};

struct matrix_shape {
  std::int64_t cols, rows;
};
/// Shapes of 7B and 13B models, then of the default model.
constexpr matrix_shape shapes[] = {{4096, 4096}, {4096, 28672}, {14336, 4096}, {5120, 27392},
                                   {576, 960},   {576, 3072},   {1536, 576}};
constexpr matrix_shape small_shapes[] = {{256, 96}, {576, 96}};

/// The compute types in which a weight form is measured.
std::vector<compute_type> computes_of(const gpu::device_info& device, const weight_form& form) {
  if (form.code_group > 0 || form.form == param_values::integers) return {compute_type::int8};
  std::vector<compute_type> computes;
  if (gpu::is_grouped(form.kind)) computes = {compute_type::int8, compute_type::int8x2};
  if (device.multiplies_f16) computes.push_back(compute_type::f16);
  computes.insert(computes.end(), {compute_type::bf16, compute_type::f32});
  return computes;
}

/// Measures linear() with one weight_form (weights.hpp) and one matrix shape, in all compute types
/// and with each number of rows. The matrix is made when the first of these cases is selected.
void measure_form(gpu::device& dev, const kernel_selection& selection,
                  const std::vector<std::int64_t>& rows, const weight_form& form,
                  const matrix_shape& s, const std::function<void(const kernel_case&)>& measure) {
  std::optional<product> made;
  for (const compute_type compute : computes_of(dev.info(), form))
    for (const std::int64_t m : rows) {
      kernel_case name;
      name.op = std::string("linear ") + form.name + " " + name_of(compute);
      name.shape = product_shape_text(m, s.cols, s.rows);
      if (!selected(selection, name)) continue;
      if (!made)
        made.emplace(dev, selection, make_source(form, s.rows, s.cols),
                     *std::max_element(rows.begin(), rows.end()));
      kernel_case c = made->measured(m, compute);
      c.op = name.op;
      measure(c);
    }
}

} // namespace

void for_each_linear_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure) {
  const auto rows = selection.rows.empty() ? std::vector<std::int64_t>{1, 16, 256} : selection.rows;
  std::vector<matrix_shape> list(std::begin(shapes), std::end(shapes));
  if (selection.small) list.assign(std::begin(small_shapes), std::end(small_shapes));
  for (const weight_form& form : forms)
    for (const matrix_shape& s : list)
      if (form.group == 0 || s.cols % form.group == 0)
        where_memory_suffices(std::string("linear ") + form.name,
                              [&] { measure_form(dev, selection, rows, form, s, measure); });
}

} // namespace twill::bench
