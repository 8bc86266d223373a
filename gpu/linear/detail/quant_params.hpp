// The scales and offsets of a grouped matrix during packing: functions that find out which formats
// can hold them exactly, and functions that store them. The functions are pure and work on the
// packer's memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "gpu/detail/packed_view.hpp"

namespace twill::gpu::detail {

/// Scales and offsets of all rows as read from the source, before their packed form is chosen.
struct quant_params {
  std::int64_t groups;
  std::unique_ptr<float[]> scales;                 // (padded rows, groups)
  std::unique_ptr<float[]> offsets;                // (padded rows, groups)
  std::int64_t code_groups = 0;                    ///< per row, for grouped_u4_as_u8
  std::unique_ptr<std::uint16_t[]> factors, bases; // (padded rows, code_groups)
};

inline bool exact_f16(float x) {
  return f32_to_bits(f16_to_f32(f32_to_f16(x))) == f32_to_bits(x);
}

/// offset / scale, rounded to an integer, of the first of n groups whose scale is not 0. The result
/// is 0 if there is no such group or if the ratio's magnitude exceeds 255.
inline std::int32_t first_factor(const quant_params& t, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (t.scales[i] == 0) continue;
    const float ratio = t.offsets[i] / t.scales[i];
    return std::abs(ratio) <= 255 ? static_cast<std::int32_t>(std::lrint(ratio)) : 0;
  }
  return 0;
}

/// Whether offset is -zero * scale for a zero point that fits a byte, which is returned in `zero`.
/// The product, rounded to f32, must equal the offset, since kernels compute this product.
inline bool has_zero_point(float scale, float offset, std::uint8_t& zero) {
  const float ratio = scale == 0 ? 0.0F : -offset / scale;
  if (!(ratio >= -0.5F && ratio <= 255)) return false;
  zero = static_cast<std::uint8_t>(std::lrint(ratio));
  return -static_cast<float>(zero) * scale == offset;
}

/// The largest zero point that is stored in a byte. A matrix with larger zero points stores
/// scale * zero point, its offset, as a floating-point number instead. For 4-bit codes the limit is
/// lower because kernels subtract the zero point in bf16.
constexpr std::int32_t most_zero_point(weight_kind kind) {
  return kind == weight_kind::grouped_u4 ? 127 : 255;
}

/// Which forms keep the scales and offsets of every group seen so far exactly.
struct quant_param_facts {
  explicit quant_param_facts(weight_kind kind) : most_zero(most_zero_point(kind)) {}

  std::int32_t most_zero;
  bool scales_f16 = true, offsets_f16 = true, factored = true, zero_points = true;

  void look_at(float scale, float offset, std::int32_t factor) {
    std::uint8_t zero;
    scales_f16 = scales_f16 && exact_f16(scale);
    offsets_f16 = offsets_f16 && exact_f16(offset);
    factored = factored && static_cast<float>(factor) * scale == offset;
    zero_points = zero_points && has_zero_point(scale, offset, zero) && zero <= most_zero;
  }
};

/// Stores one row panel's scales and offsets. `convert` converts a float to a T (f16 or float).
template <class T>
void store_params(const packed_view& w, const quant_params& t, std::int64_t panel,
                  unsigned char* to, T (*convert)(float)) {
  for (std::int64_t g = 0; g < t.groups; ++g, to += w.params_stride) {
    auto* values = reinterpret_cast<T*>(to);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t i = (panel * lanes + lane) * t.groups + g;
      values[lane] = convert(t.scales[i]);
      if (w.zero_points)
        has_zero_point(t.scales[i], t.offsets[i], to[lanes * sizeof(T) + lane]);
      else if (w.offsets_stored)
        values[lanes + lane] = convert(t.offsets[i]);
    }
  }
}

/// Stores one row panel's row scales and int16 quant params.
inline void store_int16_params(const packed_view& w, const quant_params& t, std::int64_t panel,
                               unsigned char* to) {
  constexpr float top = 32767;
  auto* row_scales = reinterpret_cast<float*>(to);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t row = (panel * lanes + lane) * t.groups;
    const float *scales = t.scales.get() + row, *offsets = t.offsets.get() + row;
    const auto part = [&](std::int64_t g) {
      return (offsets[g] + middle_code * scales[g]) / offset_fractions;
    };
    float largest = 0;
    for (std::int64_t g = 0; g < t.groups; ++g)
      largest = std::fmax(largest, std::fmax(std::fabs(scales[g]), std::fabs(part(g))));
    // The reciprocal of a smaller value would overflow; a row this small is stored as zero.
    const float inverse = largest > 1e-30F ? top / largest : 0;
    row_scales[lane] = largest > 1e-30F ? largest / top : 0;
    const auto rounded = [inverse](float x) {
      return static_cast<std::int16_t>(std::lrint(x * inverse));
    };
    for (std::int64_t g = 0; g < t.groups; ++g) {
      auto* pair =
          reinterpret_cast<std::int16_t*>(to + row_scale_bytes + g * w.params_stride) + lane * 2;
      pair[0] = rounded(scales[g]);
      pair[1] = rounded(part(g));
    }
  }
}

/// Stores one row panel's scales, factors and bases of grouped_u4_as_u8.
inline void store_lines(const packed_view& w, const quant_params& t, std::int64_t panel,
                        unsigned char* to) {
  const std::int64_t lines = w.group / w.code_group;
  for (std::int64_t g = 0; g < t.groups; ++g, to += w.params_stride) {
    auto* scales = reinterpret_cast<float*>(to);
    auto* line = reinterpret_cast<std::uint16_t*>(to + code_line_bytes);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t row = panel * lanes + lane;
      scales[lane] = t.scales[row * t.groups + g];
      for (std::int64_t l = 0; l < lines; ++l) {
        const std::int64_t i = row * t.code_groups + g * lines + l;
        line[l * 2 * lanes + lane] = t.factors[i];
        line[l * 2 * lanes + lanes + lane] = t.bases[i];
      }
    }
  }
}

} // namespace twill::gpu::detail
