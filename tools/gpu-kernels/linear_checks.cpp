// Checks of the kernels behind linear(): products of activations and packed weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/linear/linear.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"
#include "tools/gpu-kernels/linear_kernels.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/seed_layers.hpp"
#include "tools/twill-bench/kernels/weights.hpp"

namespace twill::gpu_kernels {

namespace {

using gpu::compute_type;
using gpu::weight_kind;
using gpu::test::offsets;

/// A combination of weights and a compute type whose kernel is checked. When a kernel for another
/// combination is written, add a line to the table `forms`.
struct form {
  weight_kind kind;
  compute_type compute;
};
constexpr form forms[] = {
    {weight_kind::grouped_u4, compute_type::f32},  {weight_kind::grouped_u4, compute_type::f16},
    {weight_kind::grouped_u4, compute_type::bf16}, {weight_kind::grouped_u4, compute_type::int8},
    {weight_kind::grouped_u8, compute_type::f16},  {weight_kind::grouped_u8, compute_type::bf16},
    {weight_kind::grouped_u8, compute_type::int8}, {weight_kind::grouped_u8, compute_type::int8x2},
    {weight_kind::f16, compute_type::f32},         {weight_kind::f16, compute_type::f16},
    {weight_kind::f16, compute_type::bf16},        {weight_kind::bf16, compute_type::bf16},
    {weight_kind::f32, compute_type::f32},
};

constexpr std::array<std::int64_t, 10> row_counts{1, 2, 3, 4, 5, 8, 16, 17, 33, 64};
/// Numbers of rows of activations for the layers of known models (layers_of()). The last number
/// stands for a prompt. It is reduced for matrices with many outputs per row of activations, so
/// that all rows together have at most `most_seed_outputs` outputs, because the host compares the
/// bits of all of them.
constexpr std::array<std::int64_t, 4> seed_row_counts{1, 5, 32, 2048};
constexpr std::int64_t most_seed_outputs = std::int64_t{16} << 20;
constexpr std::int64_t small_prompt = 66; ///< rows, at toy shapes
/// Numbers of rows of activations for check_prompt_shapes(), whose matrices have 2,571 outputs. On
/// GPUs with 58 to 142 multiprocessors these numbers lead to both thread block shapes of the
/// prefill kernels, whatever the type of the weights.
constexpr std::array<std::int64_t, 4> prompt_row_counts{1, 200, 300, 460};
/// Where only some outputs of a row are compared with the reference, these are the distances from
/// one compared output to the next.
constexpr std::int64_t compared_step = 997, prompt_compared_step = 89;
/// Floats between an output row's end and the next one, which no kernel may write.
constexpr std::int64_t guard = 5;

/// One product to check, with all options of a call.
struct trial {
  const gpu::packed_matrix* weights;
  compute_type compute;
  std::span<const std::int64_t> row_counts; ///< ascending; rows of x: the last
  std::vector<float> x;                     // (rows of x, x_stride)
  std::int64_t x_stride;                    ///< elements
  std::vector<std::int64_t> compared;       ///< the outputs of a row that the reference computes
  gpu::test::oracle want;                   // (rows of x, compared)
  std::vector<float> bias;                  // (outputs), or none
  std::vector<float> before;                // (rows of x, outputs): added to; or none
};

/// The output memory is filled with this byte before a call. f32 values of such bytes are NaN, so
/// outputs that a kernel did not write can be found.
constexpr unsigned char poison = 0xff;

bool is_poison(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits == 0xffffffffU;
}

/// Enough digits to tell any two floats apart.
std::string exact_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

std::string place(std::int64_t row, std::int64_t output) {
  return "row " + std::to_string(row) + ", output " + std::to_string(output);
}

/// Runs the first `m` rows. // (m, outputs + guard)
std::vector<float> outputs_of(gpu::device& dev, const trial& t, std::int64_t m) {
  const std::int64_t outputs = t.weights->rows(), stride = outputs + guard;
  std::vector<float> out(static_cast<std::size_t>(m * stride));
  std::memset(out.data(), poison, out.size() * sizeof(float));
  for (std::int64_t row = 0; row < m && !t.before.empty(); ++row)
    std::copy_n(t.before.begin() + row * outputs, outputs, out.begin() + row * stride);
  const gpu::buffer x = gpu::test::to_device(dev, t.x), to = gpu::test::to_device(dev, out);
  const gpu::buffer bias = gpu::test::to_device(dev, t.bias);
  gpu::linear_args args;
  args.x = gpu::view_2d(x.data(), gpu::dtype::f32, m, t.weights->cols());
  args.x.row_stride = t.x_stride;
  args.out = gpu::view_2d(to.data(), gpu::dtype::f32, m, outputs);
  args.out.row_stride = stride;
  args.weights = t.weights;
  args.bias = t.bias.empty() ? nullptr : static_cast<const float*>(bias.data());
  args.accumulate = !t.before.empty();
  args.compute = t.compute;
  gpu::linear(dev, args);
  return gpu::test::to_host(dev, to, out.size());
}

/// Describes the first write outside a row or output that was not written; empty if there is none.
std::string coverage_fault(const std::vector<float>& out, std::int64_t m, std::int64_t outputs) {
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t n = 0; n < outputs + guard; ++n) {
      const bool untouched = is_poison(out[static_cast<std::size_t>(row * (outputs + guard) + n)]);
      if (n < outputs && untouched) return place(row, n) + " must be written";
      if (n >= outputs && !untouched)
        return place(row, n) + " lies outside and must not be written";
    }
  return {};
}

/// Describes rows whose bits differ from the bits of the same rows in a larger batch; empty if
/// there are none.
std::string bits_fault(const std::vector<float>& out, const std::vector<float>& all, std::int64_t m,
                       std::int64_t most, std::int64_t outputs) {
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t n = 0; n < outputs; ++n) {
      const auto at = static_cast<std::size_t>(row * (outputs + guard) + n);
      if (std::memcmp(&out[at], &all[at], sizeof(float)) != 0)
        return place(row, n) + " must have the same bits among " + std::to_string(m) + " and " +
               std::to_string(most) + " rows, got " + exact_text(out[at]) + " and " +
               exact_text(all[at]);
    }
  return {};
}

outcome examine(gpu::device& dev, const trial& t, std::string kernel, std::string shape) {
  outcome found{.kernel = std::move(kernel), .shape = std::move(shape)};
  const std::int64_t most = t.row_counts.back(), outputs = t.weights->rows();
  const std::vector<float> all = outputs_of(dev, t, most);
  found.fault = coverage_fault(all, most, outputs);
  const auto n_compared = static_cast<std::int64_t>(t.compared.size());
  found.outputs = most * n_compared;
  for (std::int64_t i = 0; i < found.outputs; ++i) {
    const std::int64_t row = i / n_compared,
                       n = t.compared[static_cast<std::size_t>(i % n_compared)];
    const float got = all[static_cast<std::size_t>(row * (outputs + guard) + n)];
    const auto at = static_cast<std::size_t>(i);
    const double error = std::abs(got - t.want.value[at]) / t.want.bound[at];
    if (!(error <= found.worst) && !std::isnan(found.worst)) found.worst = error; // keeps NaN
    if (!(error <= 1) && found.fault.empty())
      found.fault = place(row, n) + " must be within " + exact_text(t.want.bound[at]) + " of " +
                    exact_text(t.want.value[at]) + ", got " + exact_text(got);
  }
  for (const std::int64_t m : t.row_counts) // the last one again: a result must not depend on luck
    if (found.fault.empty()) {
      const std::vector<float> out = outputs_of(dev, t, m);
      found.fault = coverage_fault(out, m, outputs);
      if (found.fault.empty()) found.fault = bits_fault(out, all, m, most, outputs);
    }
  return found;
}

std::vector<std::int64_t> all_of(std::int64_t n) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    list[static_cast<std::size_t>(i)] = i;
  return list;
}

/// Adds to the trial a bias, and initial outputs that the product accumulates to.
void add_before(trial& t) {
  const std::int64_t outputs = t.weights->rows();
  t.bias = gpu::test::random_floats(outputs, 7);
  t.before = gpu::test::random_floats(t.row_counts.back() * outputs, 8);
  const std::size_t n = t.compared.size();
  for (std::size_t i = 0; i < t.want.value.size(); ++i) {
    const auto output = static_cast<std::size_t>(t.compared[i % n]);
    t.want.value[i] += double{t.bias[output]} +
                       double{t.before[i / n * static_cast<std::size_t>(outputs) + output]};
    t.want.bound[i] += 1e-5; // bias and sum are rounded as well
  }
}

/// Checks one plain call of linear(), and one call with strided and unaligned rows, a permutation
/// of the columns, a bias and accumulation to existing outputs.
void check_matrix(gpu::device& dev, const options& given, const gpu::test::matrix& w,
                  compute_type compute, const std::string& shape, results& out) {
  const std::string kernel = kernel_name(gpu::name_of(w.kind), compute);
  const std::int64_t most = row_counts.back();
  const std::vector<float> x = gpu::test::spiky_floats(most * w.cols, 5);
  if (const std::string plain = shape + ", plain"; chosen(given, kernel, plain)) {
    const auto packed = bench::value_of(gpu::pack(dev, w.source(), "weights"));
    if (!has_kernel(dev, packed, compute)) return;
    const gpu::test::int8_rounding rounding = gpu::test::int8_rounding_of(dev, packed);
    const trial t{&packed,
                  compute,
                  row_counts,
                  x,
                  w.cols,
                  all_of(w.rows),
                  gpu::test::exact(w, x, most, compute, rounding),
                  {},
                  {}};
    out.checked(examine(dev, t, kernel, plain));
  }
  const std::string full = shape + ", order, bias, sum";
  if (!chosen(given, kernel, full)) return;
  // Column c multiplies x[order[c]].
  auto order = std::make_shared<std::vector<std::int32_t>>();
  for (std::int64_t k = 0; k < w.cols; ++k)
    order->push_back(static_cast<std::int32_t>(w.cols - 1 - k));
  gpu::weight_source source = w.source();
  source.column_order = order;
  const auto packed = bench::value_of(gpu::pack(dev, source, "weights"));
  if (!has_kernel(dev, packed, compute)) return;
  const gpu::test::int8_rounding rounding = gpu::test::int8_rounding_of(dev, packed);
  trial t{&packed,
          compute,
          row_counts,
          {},
          w.cols + 3,
          all_of(w.rows),
          gpu::test::exact(w, x, most, compute, rounding),
          {},
          {}};
  t.x.assign(static_cast<std::size_t>(most * t.x_stride), NAN); // between rows: never read
  for (std::int64_t i = 0; i < most * w.cols; ++i)
    t.x[static_cast<std::size_t>(i / w.cols * t.x_stride + w.cols - 1 - i % w.cols)] =
        x[static_cast<std::size_t>(i)];
  add_before(t);
  out.checked(examine(dev, t, kernel, full));
}

/// Some rows of a source, for the reference.
gpu::test::matrix rows_of(const gpu::weight_source& source, std::span<const std::int64_t> rows) {
  gpu::test::matrix w;
  w.kind = source.kind;
  w.rows = static_cast<std::int64_t>(rows.size());
  w.cols = source.cols;
  w.group = source.group;
  const std::int64_t groups = source.group > 0 ? source.cols / source.group : 0;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(source.cols));
  std::vector<float> scales(static_cast<std::size_t>(groups)), shifts(scales.size());
  for (const std::int64_t row : rows) {
    if (groups > 0) source.grouped(row, {codes.data(), scales.data(), shifts.data()});
    const auto* halves =
        groups > 0 ? nullptr : static_cast<const std::uint16_t*>(source.dense_row(row));
    for (std::int64_t k = 0; k < source.cols; ++k) {
      const auto g = static_cast<std::size_t>(groups > 0 ? k / source.group : 0);
      w.values.push_back(groups > 0
                             ? std::fma(scales[g], codes[static_cast<std::size_t>(k)], shifts[g])
                         : source.kind == weight_kind::f16 ? gpu::detail::f16_to_f32(halves[k])
                                                           : gpu::detail::bf16_to_f32(halves[k]));
    }
  }
  return w;
}

/// A trial that multiplies the matrix with activations of several numbers of rows, those in
/// `counts`. A row's outputs must have the same bits in all of these products. Every `step`-th
/// output and the last one are also compared with the reference.
trial trial_of(const gpu::device& dev, const gpu::packed_matrix& packed,
               const gpu::weight_source& source, compute_type compute,
               std::span<const std::int64_t> counts, std::int64_t step) {
  const std::int64_t most = counts.back();
  trial t{&packed, compute, counts, gpu::test::spiky_floats(most * source.cols, 5), source.cols, {},
          {},      {},      {}};
  for (std::int64_t n = 0; n < source.rows; n += step)
    t.compared.push_back(n);
  t.compared.push_back(source.rows - 1);
  t.want = gpu::test::exact(rows_of(source, t.compared), t.x, most, compute,
                            gpu::test::int8_rounding_of(dev, packed));
  return t;
}

struct matrix_shape {
  std::int64_t rows, cols;
  std::int32_t group;
};

/// Calls f(make, compute, kernel, shape) for each combination of `forms`, of `shapes` and of ways
/// to store scales and zero points. make() returns the matrix; `kernel` and `shape` are the names
/// in the results.
template <class F>
void for_forms(std::span<const matrix_shape> shapes, const F& f) {
  for (const form& one : forms)
    for (const matrix_shape& s : shapes)
      for (const auto& [how, name] :
           {std::pair{offsets::zero_points, "f16 scales, zeros"},
            std::pair{offsets::zero_points_f32, "zeros"}, std::pair{offsets::factored, "factored"},
            std::pair{offsets::stored_f16, "f16 offsets"},
            std::pair{offsets::stored_f32, "offsets"}}) {
        const bool grouped = gpu::is_grouped(one.kind);
        if (!grouped && how != offsets::zero_points) continue;
        const std::int32_t group = grouped ? s.group : 0;
        std::string shape = std::to_string(s.cols) + " -> " + std::to_string(s.rows);
        if (grouped) shape += ", groups of " + std::to_string(group) + ", " + name;
        const auto make = [&, form_of_scales = how] {
          return gpu::test::random_matrix(one.kind, s.rows, s.cols, group, form_of_scales, 2);
        };
        f(make, one.compute, kernel_name(gpu::name_of(one.kind), one.compute), shape);
      }
}

void check_small_shapes(gpu::device& dev, const options& given, results& out) {
  constexpr matrix_shape shapes[] = {{1, 8, 8},       {16, 32, 32},    {35, 240, 48}, {33, 288, 16},
                                     {17, 1024, 128}, {20, 1152, 128}, {9, 2080, 32}};
  for_forms(shapes, [&](const auto& make, compute_type compute, const std::string&,
                        const std::string& shape) {
    check_matrix(dev, given, make(), compute, shape, out);
  });
}

/// Checks that linear_silu_mul() gives the same bits as linear() followed by silu_mul().
std::string gated_fault(gpu::device& dev, const trial& t, std::int64_t m) {
  const std::int64_t outputs = t.weights->rows() / 2, cols = t.weights->cols();
  const std::vector<float> product = outputs_of(dev, t, m);
  const gpu::buffer x = gpu::test::to_device(dev, t.x);
  const gpu::buffer room = gpu::test::to_device(dev, product);
  const gpu::buffer to = gpu::test::to_device(
      dev, std::vector<float>(static_cast<std::size_t>(m * (outputs + guard)), NAN));
  gpu::linear_args args;
  args.x = gpu::view_2d(x.data(), gpu::dtype::f32, m, cols);
  args.out = gpu::view_2d(room.data(), gpu::dtype::f32, m, 2 * outputs);
  args.weights = t.weights;
  args.compute = t.compute;
  gpu::tensor_ref out = gpu::view_2d(to.data(), gpu::dtype::f32, m, outputs);
  out.row_stride = outputs + guard;
  const auto& backend = dev.ops().get<gpu::detail::linear_backend>();
  if (backend.run_silu_mul == nullptr || !backend.run_silu_mul(dev, args, out)) return {};
  const std::vector<float> got =
      gpu::test::to_host(dev, to, static_cast<std::size_t>(m * (outputs + guard)));
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t n = 0; n < outputs; ++n) {
      const float* const gate = product.data() + row * (2 * outputs + guard) + n;
      const float want = gpu::detail::silu(gate[0]) * gate[outputs];
      const float& value = got[static_cast<std::size_t>(row * (outputs + guard) + n)];
      if (std::memcmp(&value, &want, sizeof want) != 0)
        return place(row, n) + " of silu_mul must be " + exact_text(want) + ", got " +
               exact_text(value);
    }
  return {};
}

/// Checks shapes with enough rows and outputs for the prefill kernels. The last thread blocks are
/// only partly filled in both directions. The number of outputs is not a multiple of four, so that
/// the kernels must write outputs one by one.
void check_prompt_shapes(gpu::device& dev, const options& given, results& out) {
  const std::int64_t rows = given.small ? 67 : 2571;
  const matrix_shape shapes[] = {{rows, 640, 128}, {rows, 640, 32}, {rows, 288, 16}};
  for_forms(shapes, [&](const auto& make, compute_type compute, const std::string& kernel,
                        const std::string& shape) {
    const std::string prompt = shape + ", prompt";
    if (!chosen(given, kernel, prompt)) return;
    const gpu::test::matrix w = make();
    const auto packed = bench::value_of(gpu::pack(dev, w.source(), "weights"));
    if (!has_kernel(dev, packed, compute)) return;
    trial t = trial_of(dev, packed, w.source(), compute, prompt_row_counts, prompt_compared_step);
    add_before(t);
    out.checked(examine(dev, t, kernel, prompt));
  });
}

/// Checks the prefill kernels with shapes in which four outputs are written at a time. Also checks
/// that linear_silu_mul() gives the same bits as linear() followed by silu_mul().
void check_gated_shapes(gpu::device& dev, const options& given, results& out) {
  const std::int64_t rows = given.small ? 128 : 2624;
  const matrix_shape shapes[] = {{rows, 640, 128}, {rows, 640, 32}, {rows, 288, 16}};
  for_forms(shapes, [&](const auto& make, compute_type compute, const std::string& kernel,
                        const std::string& shape) {
    const std::string gated = shape + ", gated";
    if (!chosen(given, kernel, gated)) return;
    const gpu::test::matrix w = make();
    const auto packed = bench::value_of(gpu::pack(dev, w.source(), "weights"));
    if (!has_kernel(dev, packed, compute)) return;
    const trial t =
        trial_of(dev, packed, w.source(), compute, prompt_row_counts, prompt_compared_step);
    outcome found = examine(dev, t, kernel, gated);
    for (const std::int64_t m : t.row_counts)
      if (found.fault.empty()) found.fault = gated_fault(dev, t, m);
    out.checked(found);
  });
}

void check_seed_shapes(gpu::device& dev, const options& given, results& out) {
  for (const bench::seed_layer& seed : layers_of(given))
    for (const bench::product_shape& s : seed.products()) {
      const compute_type compute = compute_of(dev, seed);
      if (!chosen(given, kernel_name(gpu::name_of(seed.kind), compute), shape_of(seed, s)))
        continue;
      if (!takes(dev, seed, s, compute)) continue;
      std::array<std::int64_t, 4> counts = seed_row_counts;
      counts.back() =
          given.small ? small_prompt : std::min(counts.back(), most_seed_outputs / s.rows);
      const gpu::weight_source source = source_of(seed, s);
      const auto packed = bench::value_of(gpu::pack(dev, source, "weights"));
      out.checked(examine(dev, trial_of(dev, packed, source, compute, counts, compared_step),
                          kernel_name(gpu::name_of(seed.kind), compute), shape_of(seed, s)));
    }
}

} // namespace

void check_linear(gpu::device& dev, const options& given, results& out) {
  check_small_shapes(dev, given, out);
  check_prompt_shapes(dev, given, out);
  check_gated_shapes(dev, given, out);
  check_seed_shapes(dev, given, out);
}

} // namespace twill::gpu_kernels
