// Random matrices of every kind with the values that they represent, and a naive product in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/device.hpp"
#include "gpu/linear/cuda/gemm_i8.hpp"
#include "gpu/linear/linear.hpp"

namespace twill::gpu::test {

/// How a grouped matrix's offsets relate to its scales.
enum class offsets { stored_f16, stored_f32, factored, zero_points, zero_points_f32 };

struct matrix {
  weight_kind kind = weight_kind::f32;
  std::int64_t rows = 0, cols = 0;
  std::int32_t group = 0;
  std::vector<float> values; // (rows, cols) as the format defines them
  std::vector<std::uint8_t> codes;
  std::vector<float> scales, group_offsets; // (rows, cols / group)
  std::vector<std::uint16_t> halves;
  bool int16_quant_params = false;

  weight_source source() const {
    weight_source s;
    s.kind = kind;
    s.rows = rows;
    s.cols = cols;
    s.group = group;
    if (int16_quant_params) s.only_compute = compute_type::int8;
    s.dense_row = [this](std::int64_t r) -> const void* {
      if (kind == weight_kind::f32) return values.data() + r * cols;
      return halves.data() + r * cols;
    };
    s.grouped = [this](std::int64_t r, const grouped_row& out) {
      const std::int64_t groups = cols / group;
      std::copy_n(codes.data() + r * cols, cols, out.codes);
      std::copy_n(scales.data() + r * groups, groups, out.scales);
      std::copy_n(group_offsets.data() + r * groups, groups, out.offsets);
    };
    return s;
  }
};

inline float via_f16(float x) {
  return detail::f16_to_f32(detail::f32_to_f16(x));
}

inline void fill_dense(matrix& w, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 0.1F);
  for (float& v : w.values) {
    v = normal(random);
    if (w.kind == weight_kind::f16) {
      w.halves.push_back(detail::f32_to_f16(v));
      v = detail::f16_to_f32(w.halves.back());
    } else if (w.kind == weight_kind::bf16) {
      w.halves.push_back(detail::f32_to_bf16(v));
      v = detail::bf16_to_f32(w.halves.back());
    }
  }
}

inline void fill_grouped(matrix& w, offsets form, std::mt19937& random) {
  const int top = w.kind == weight_kind::grouped_u4 ? 15 : 255;
  std::uniform_int_distribution<int> code(0, top);
  std::uniform_real_distribution<float> scale(0.001F, 0.01F);
  std::uniform_real_distribution<float> shift(-0.1F, 0.05F);
  for (std::int64_t g = 0; g < w.rows * (w.cols / w.group); ++g) {
    float s = scale(random);
    float o = shift(random);
    if (form == offsets::zero_points || form == offsets::zero_points_f32) {
      if (form == offsets::zero_points) s = via_f16(s);
      o = -static_cast<float>(code(random)) * s;
    } else if (form != offsets::stored_f32) {
      s = via_f16(s);
      o = form == offsets::factored ? (top == 15 ? -8 : -128) * s : via_f16(o);
    }
    w.scales.push_back(s);
    w.group_offsets.push_back(o);
    for (std::int64_t k = g * w.group; k < (g + 1) * w.group; ++k) {
      const int c = code(random);
      w.codes.push_back(static_cast<std::uint8_t>(c));
      w.values[static_cast<std::size_t>(k)] = std::fma(s, static_cast<float>(c), o);
    }
  }
}

inline matrix random_matrix(weight_kind kind, std::int64_t rows, std::int64_t cols,
                            std::int32_t group, offsets form, unsigned seed) {
  std::mt19937 random(seed);
  matrix w;
  w.kind = kind;
  w.rows = rows;
  w.cols = cols;
  w.group = group;
  w.values.resize(static_cast<std::size_t>(rows * cols));
  if (kind >= weight_kind::grouped_u4)
    fill_grouped(w, form, random);
  else
    fill_dense(w, random);
  return w;
}

inline std::vector<float> random_floats(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v)
    x = normal(random);
  return v;
}

/// Random floats with an outlier, 50 times as large, in every second run of 32 values, as trained
/// models have them.
inline std::vector<float> spiky_floats(std::int64_t n, unsigned seed) {
  std::vector<float> v = random_floats(n, seed);
  for (std::size_t i = 7; i < v.size(); i += 64)
    v[i] *= 50;
  return v;
}

/// The value that code 8 has in group `g`.
inline double from_middle(const matrix& w, std::int64_t g) {
  const auto i = static_cast<std::size_t>(g);
  return w.group_offsets[i] + 8.0 * w.scales[i];
}

/// The values that a grouped_u4 matrix has after it was packed with
/// weight_source::int16_quant_params, which rounds scales and offsets to 16-bit multiples of a
/// unit. The unit of a row is the largest |scale| or |value of code 8| / 8 of its groups, divided
/// by 32767. Scales are rounded to multiples of the unit, and the values of code 8 to multiples of
/// 8 units.
inline matrix with_int16_quant_params(matrix w) {
  w.int16_quant_params = true;
  const std::int64_t groups = w.cols / w.group;
  for (std::int64_t r = 0; r < w.rows; ++r) {
    double largest = 0;
    for (std::int64_t g = r * groups; g < (r + 1) * groups; ++g)
      largest = std::max({largest, std::abs(double{w.scales[static_cast<std::size_t>(g)]}),
                          std::abs(from_middle(w, g) / 8)});
    const double row_scale = largest / 32767;
    for (std::int64_t g = r * groups; g < (r + 1) * groups; ++g) {
      const double scale =
          row_scale * std::round(w.scales[static_cast<std::size_t>(g)] / row_scale);
      const double offset = 8 * row_scale * std::round(from_middle(w, g) / 8 / row_scale);
      for (std::int64_t k = g * w.group; k < (g + 1) * w.group; ++k) {
        const auto i = static_cast<std::size_t>(k);
        w.values[i] = static_cast<float>(scale * (w.codes[i] - 8) + offset);
      }
    }
  }
  return w;
}

/// How activations are rounded in int8 compute.
struct int8_rounding {
  std::int64_t columns = 32;    ///< that share a scale
  bool always_residual = false; ///< int8x2: also where no value is much larger
};

/// What a call computes, and how far a result may be from the exact product.
struct oracle {
  std::vector<double> value; // (m, rows)
  std::vector<double> bound; // (m, rows)
};

/// The exact product, and a bound of the error from the rounding of each operand and of the sum. An
/// f32 sum errs by at most cols * 2^-24 of the sum of its products' magnitudes; bf16 adds 2^-8 of
/// it, f16 2^-11. int8 activations err by half a step. A step is the largest magnitude among the
/// columns that share a scale (32, or as `rounding` says), divided by 127. In int8x2, which has two
/// int8 numbers for an activation, the step is 128 times smaller among columns in which a few
/// values are much larger than the others, or everywhere if `rounding` says so. With
/// int16_quant_params, rounding the offsets adds |value of code 8| / 8 of a step for every 32
/// columns.
inline oracle exact(const matrix& w, const std::vector<float>& x, std::int64_t m,
                    compute_type compute, int8_rounding rounding = {}) {
  const bool grouped = w.kind >= weight_kind::grouped_u4;
  const bool int8 = compute >= compute_type::int8 && grouped;
  const bool f16 = compute == compute_type::f16;
  const bool bf16 = compute == compute_type::bf16 || (compute == compute_type::int8 && !grouped);
  oracle o;
  for (std::int64_t r = 0; r < m; ++r) {
    const float* row = x.data() + r * w.cols;
    std::vector<double> step(static_cast<std::size_t>(w.cols));
    for (std::int64_t k = 0; k < w.cols; ++k) {
      double largest = 0, total = 0;
      const std::int64_t begin = k / rounding.columns * rounding.columns;
      for (std::int64_t j = begin; j < std::min(w.cols, begin + rounding.columns); ++j) {
        const double value = std::abs(static_cast<double>(row[j]));
        largest = std::max(largest, value);
        total += value;
      }
      // Rounding moves the sum of 32 codes by 16 at most: within that, either step will do.
      const bool has_residual =
          compute == compute_type::int8x2 &&
          (rounding.always_residual ||
           total / largest * 127 + 16 < static_cast<double>(detail::residual_threshold));
      step[static_cast<std::size_t>(k)] = largest / (has_residual ? 127 * 128 : 127);
    }
    for (std::int64_t n = 0; n < w.rows; ++n) {
      double sum = 0, magnitude = 0, quantisation = 0;
      for (std::int64_t k = 0; k < w.cols; ++k) {
        const double weight = w.values[static_cast<std::size_t>(n * w.cols + k)];
        sum += weight * row[k];
        // The code's and the offset's parts are summed apart in int8 compute: both may cancel.
        const double parts = grouped ? 2 * std::abs(weight) + 0.2 : std::abs(weight);
        magnitude += parts * std::abs(row[k]);
        quantisation += std::abs(weight) * 0.51 * step[static_cast<std::size_t>(k)];
        if (w.int16_quant_params && k % 32 == 0)
          quantisation += std::abs(from_middle(w, (n * w.cols + k) / 32)) / 8 *
                          step[static_cast<std::size_t>(k)];
      }
      const double relative = static_cast<double>(w.cols + 8) * 0x1p-24 + (bf16  ? 2.1 * 0x1p-9
                                                                           : f16 ? 2.1 * 0x1p-12
                                                                                 : 0);
      o.value.push_back(sum);
      o.bound.push_back(magnitude * relative + (int8 ? quantisation : 0) + 1e-30);
    }
  }
  return o;
}

inline int8_rounding int8_rounding_of(const device& dev, const packed_matrix& w) {
  const detail::packed_view& view = w.get().view;
  const bool of_cuda = dev.info().kind == "cuda" && cuda::gemm_i8_takes(view);
  return of_cuda ? int8_rounding{cuda::gemm_i8_columns(view), true} : int8_rounding{};
}

/// Copies a vector to the device, or back.
template <class T>
buffer to_device(device& dev, const std::vector<T>& v) {
  buffer b = dev.allocate(std::max<std::size_t>(1, v.size()) * sizeof(T), "test").value();
  dev.upload(b.data(), v.data(), v.size() * sizeof(T));
  return b;
}
inline std::vector<float> to_host(device& dev, const buffer& b, std::size_t n) {
  std::vector<float> v(n);
  dev.fence();
  dev.download(v.data(), b.data(), n * sizeof(float));
  return v;
}

inline std::vector<float> run_linear(device& dev, const packed_matrix& w,
                                     const std::vector<float>& x, std::int64_t m,
                                     compute_type compute, std::int64_t residual_from = 0) {
  const buffer from = to_device(dev, x);
  const auto n = static_cast<std::size_t>(m * w.rows());
  const buffer to = dev.allocate(std::max<std::size_t>(1, n) * 4, "out").value();
  linear_args args;
  args.x = view_2d(from.data(), dtype::f32, m, w.cols());
  args.out = view_2d(to.data(), dtype::f32, m, w.rows());
  args.weights = &w;
  args.compute = compute;
  args.residual_from = residual_from;
  linear(dev, args);
  return to_host(dev, to, n);
}

} // namespace twill::gpu::test
