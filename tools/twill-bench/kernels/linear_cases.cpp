#include "tools/twill-bench/kernels/linear_cases.hpp"

#include <algorithm>
#include <cstring>

#include "gpu/detail/half.hpp"
#include "gpu/linear/linear.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"

namespace twill::bench {

namespace {

using gpu::compute_type;
using gpu::weight_kind;

/// How a format's scales and offsets look to the packer.
enum class param_values {
  factored, ///< offset = -8 * scale: Q4_0
  zeros,    ///< f16 scales and integer zero points: GPTQ, AWQ
  halves,   ///< f16 scales and f16 offsets: Q4_1
  integers, ///< halves in 16-bit integers, for a matrix of int8 compute alone
  floats,   ///< products of two floats: k-quants
};

struct weight_form {
  const char* name;
  weight_kind kind;
  std::int32_t group;
  param_values form;
  std::int32_t code_group = 0; ///< of grouped_u4_as_u8
};

constexpr weight_form forms[] = {
    {"u4/128 zeros", weight_kind::grouped_u4, 128, param_values::zeros},
    {"u4/64 zeros", weight_kind::grouped_u4, 64, param_values::zeros},
    {"u4/32 factored", weight_kind::grouped_u4, 32, param_values::factored},
    {"u4/32 halves", weight_kind::grouped_u4, 32, param_values::halves},
    {"u4/32 integers", weight_kind::grouped_u4, 32, param_values::integers},
    {"u4/32 floats", weight_kind::grouped_u4, 32, param_values::floats},
    {"u4/16 floats", weight_kind::grouped_u4, 16, param_values::floats},
    {"u8/16 floats", weight_kind::grouped_u8, 16, param_values::floats},
    {"u8/32 factored", weight_kind::grouped_u8, 32, param_values::factored},
    {"u8/192 factored", weight_kind::grouped_u8, 192, param_values::factored},
    {"u4 as u8/192 of 32", weight_kind::grouped_u4_as_u8, 192, param_values::factored, 32},
    {"u4 as u8/256 of 128", weight_kind::grouped_u4_as_u8, 256, param_values::factored, 128},
    {"bf16", weight_kind::bf16, 0, param_values::factored},
    {"f16", weight_kind::f16, 0, param_values::factored},
};

struct layer_shape {
  std::int64_t cols, rows;
};
/// Of 7B and 13B models, then of the default model.
constexpr layer_shape shapes[] = {{4096, 4096}, {4096, 28672}, {14336, 4096}, {5120, 27392},
                                  {576, 960},   {576, 3072},   {1536, 576}};
constexpr layer_shape small_shapes[] = {{256, 96}, {576, 96}};

/// Enough copies of a matrix that no cache keeps one until its next turn.
constexpr std::int64_t bytes_in_turn = std::int64_t{192} << 20;

gpu::weight_source make_source(const weight_form& form, const layer_shape& s) {
  gpu::weight_source source;
  source.kind = form.kind;
  source.cols = s.cols;
  source.rows = s.rows;
  source.group = form.group;
  source.code_group = form.code_group;
  if (form.form == param_values::integers) source.only_compute = gpu::compute_type::int8;
  const auto halves = std::make_shared<std::vector<std::uint16_t>>(static_cast<std::size_t>(s.cols),
                                                                   std::uint16_t{0x3c00});
  source.dense_row = [halves](std::int64_t) -> const void* { return halves->data(); };
  source.grouped = [form, s](std::int64_t row, const gpu::grouped_row& out) {
    const auto f16 = [](float x) { return gpu::detail::f16_to_f32(gpu::detail::f32_to_f16(x)); };
    std::memset(out.codes, static_cast<int>(row % 16), static_cast<std::size_t>(s.cols));
    if (form.code_group > 0) {
      std::fill_n(out.factors, s.cols / form.code_group,
                  static_cast<std::uint16_t>(row * 256 % 4096));
      std::fill_n(out.bases, s.cols / form.code_group, std::uint16_t{1024});
    }
    for (std::int64_t g = 0; g < s.cols / form.group; ++g) {
      const auto wave = static_cast<float>((row * 31 + g * 17) % 1000);
      out.scales[g] = f16(0.001F + wave * 1.1e-6F);
      if (form.form == param_values::floats) out.scales[g] *= 0.987F;
      out.offsets[g] = form.form == param_values::floats ? -0.01F - wave * 1e-6F
                       : form.form == param_values::zeros
                           ? -static_cast<float>((row + g) % 16) * out.scales[g]
                       : form.form == param_values::factored ? -8 * out.scales[g]
                                                             : f16(-0.01F - wave * 1e-6F);
    }
  };
  return source;
}

} // namespace

void for_each_linear_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(const kernel_case&)>& measure) {
  const std::int64_t most = *std::max_element(selection.rows.begin(), selection.rows.end());
  for (const weight_form& form : forms) {
    std::vector<layer_shape> list(std::begin(shapes), std::end(shapes));
    if (selection.small) list.assign(std::begin(small_shapes), std::end(small_shapes));
    for (const layer_shape& s : list) {
      if (form.group != 0 && s.cols % form.group != 0) continue;
      std::vector<gpu::packed_matrix> copies;
      device_floats x, out;
      std::size_t turn = 0;
      for (const compute_type compute :
           {compute_type::int8, compute_type::int8x2, compute_type::bf16, compute_type::f32}) {
        if (form.group == 0 && compute >= compute_type::int8) continue; // computed in floats
        const bool for_int8 = form.code_group > 0 || form.form == param_values::integers;
        if (for_int8 && compute != compute_type::int8) continue; // made for it alone
        for (const std::int64_t m : selection.rows) {
          kernel_case c;
          c.op = std::string("linear ") + form.name + " " + name_of(compute);
          c.shape =
              std::to_string(m) + " x " + std::to_string(s.cols) + " -> " + std::to_string(s.rows);
          if (!selected(selection, c)) continue;
          if (copies.empty()) {
            x = device_floats(dev, most * s.cols, 0.5F);
            out = device_floats(dev, most * s.rows, 0);
            do
              copies.push_back(value_of(pack(dev, make_source(form, s), "weights")));
            while (!selection.small &&
                   static_cast<std::int64_t>(copies.size()) * copies[0].bytes() < bytes_in_turn);
          }
          c.bytes = static_cast<double>(copies[0].bytes() + m * (s.cols + s.rows) * 4);
          c.operations = 2.0 * static_cast<double>(m * s.cols * s.rows);
          c.compute = compute;
          c.run = [&] {
            gpu::linear_args args;
            args.x = x.matrix(m, s.cols);
            args.out = out.matrix(m, s.rows);
            args.weights = &copies[turn++ % copies.size()];
            args.compute = compute;
            gpu::linear(dev, args);
          };
          measure(c);
        }
      }
    }
  }
}

} // namespace twill::bench
