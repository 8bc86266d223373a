#include "models/decoder/w8a8_weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "models/checkpoint/element.hpp"

namespace twill::models {
namespace {

constexpr std::int64_t most_columns = 256; ///< most columns of one group
constexpr float most = 127;
constexpr float middle = 128; ///< the code that stands for zero

/// A group (weights of a row that share one scale) whose magnitudes are all below this is stored as
/// zeros, because the reciprocal of its scale could overflow.
constexpr float least = 1e-30F;

/// The size of the groups of a row; 0 when the columns have no such size.
std::int32_t group_of(std::int64_t columns, w8a8_kernels kernels) {
  for (const std::int64_t multiple : {128, 64, 32, 8}) {
    if (multiple > 32 && kernels == w8a8_kernels::host) continue;
    for (std::int64_t group = most_columns; group > 0; group -= multiple)
      if (columns % group == 0) return static_cast<std::int32_t>(group);
  }
  return 0;
}

/// Rounds a positive x up to 11 significant bits, which adds at most 2^-10 of x. Scales that are
/// rounded in this way are exact in f16 if they are in the range of f16. Because the scale is not
/// rounded down, no code exceeds `most`.
float rounded_up(float x) {
  constexpr std::uint32_t below = (1U << 13) - 1;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + below) & ~below);
}

/// The largest magnitude; NaN when a value is not finite.
float largest(const float* values, std::int32_t n) {
  float top = 0, zero = 0;
  for (std::int32_t i = 0; i < n; ++i) {
    top = std::max(top, std::abs(values[i]));
    zero += values[i] * 0;
  }
  return zero == 0 ? top : std::numeric_limits<float>::quiet_NaN();
}

/// Reads row `row` as f32, exactly for dense kinds and as scale * code + offset for grouped ones.
std::vector<float> row_values(const gpu::weight_source& from, std::int64_t row) {
  const auto cols = static_cast<std::size_t>(from.cols);
  std::vector<float> values(cols);
  if (from.group == 0) {
    widen_values(from.kind, static_cast<const std::byte*>(from.dense_row(row)), from.cols,
                 values.data());
    return values;
  }
  const auto group = static_cast<std::size_t>(from.group);
  std::vector<std::uint8_t> codes(cols);
  std::vector<float> scales(cols / group), offsets(cols / group);
  from.grouped(row, {codes.data(), scales.data(), offsets.data()});
  for (std::size_t g = 0; g < cols / group; ++g)
    for (std::size_t c = g * group; c < (g + 1) * group; ++c)
      values[c] = scales[g] * static_cast<float>(codes[c]) + offsets[g];
  return values;
}

void round_row(const gpu::weight_source& from, std::int32_t group, std::int64_t row,
               const gpu::grouped_row& out) {
  const std::vector<float> values = row_values(from, row);
  for (std::int64_t g = 0; g < from.cols / group; ++g) {
    const float* v = values.data() + g * group;
    const float top = largest(v, group);
    std::uint8_t* codes = out.codes + g * group;
    if (!(top > least)) {
      std::fill_n(codes, group, static_cast<std::uint8_t>(middle));
      out.scales[g] = out.offsets[g] = top < 1 ? 0 : top; // packing refuses values that are not
                                                          // finite
      continue;
    }
    const float scale = rounded_up(top / most), inverse = 1 / scale;
    out.scales[g] = scale;
    out.offsets[g] = -middle * scale;
    for (std::int32_t c = 0; c < group; ++c)
      codes[c] = static_cast<std::uint8_t>(inverse * v[c] + (middle + 0.5F));
  }
}

/// Fills `out` for a row whose weights keep their 4-bit codes, although the kernel multiplies 8-bit
/// codes. For each group of 4-bit codes it computes two 16-bit numbers, factor and base. From these
/// and a 4-bit code the kernel makes the 8-bit code (factor * code + base) / 256, rounded down.
void widen_row(const gpu::weight_source& from, std::int32_t group, std::int64_t row,
               const gpu::grouped_row& out) {
  const std::int64_t n = from.cols / from.group;
  std::vector<float> scales(static_cast<std::size_t>(n)), offsets(static_cast<std::size_t>(n));
  from.grouped(row, {out.codes, scales.data(), offsets.data()});
  const std::int64_t parts = group / from.group;
  for (std::int64_t g = 0; g < from.cols / group; ++g) {
    float top = 0, zero = 0;
    for (std::int64_t c = g * group; c < (g + 1) * group; ++c) {
      const auto i = static_cast<std::size_t>(c / from.group);
      const float value = scales[i] * static_cast<float>(out.codes[c]) + offsets[i];
      top = std::max(top, std::abs(value));
      zero += value * 0;
    }
    const bool counts = top > least && zero == 0;
    const double scale = counts ? static_cast<double>(top / most) : 0;
    // Packing refuses values that are not finite.
    out.scales[g] = zero == 0 ? static_cast<float>(scale) : zero;
    out.offsets[g] = -middle * out.scales[g];
    for (std::int64_t p = g * parts; p < (g + 1) * parts; ++p) {
      const auto i = static_cast<std::size_t>(p);
      // The kernel's sums wrap around modulo 2^16, so the terms may wrap around too.
      const auto in_256ths = [&](float x, double shift) {
        const double value = 256 * (counts ? x / scale + shift : shift);
        return static_cast<std::uint16_t>(std::llrint(std::fmod(value, 65536.0)));
      };
      out.factors[p] = in_256ths(scales[i], 0);
      out.bases[p] = in_256ths(offsets[i], middle + 0.5);
    }
  }
}

/// How one matrix is rounded.
struct rounding {
  std::int32_t group = 0;
  bool keeps_codes = false; ///< the 4-bit codes of the source stay
};

/// A group of 0 means that the matrix is not rounded.
rounding rounding_of(const gpu::weight_source& from, w8a8_kernels kernels) {
  if (kernels == w8a8_kernels::host && from.kind == gpu::weight_kind::grouped_u4 &&
      from.group % 32 == 0)
    for (std::int64_t group = most_columns / from.group * from.group; group >= 64;
         group -= from.group)
      if (from.cols % group == 0) return {static_cast<std::int32_t>(group), true};
  return {group_of(from.cols, kernels), false};
}

class w8a8_checkpoint final : public checkpoint {
public:
  w8a8_checkpoint(std::shared_ptr<const checkpoint> source,
                  const std::set<std::string>& as_they_are, w8a8_kernels kernels)
      : source_(std::move(source)), infos_(source_->tensors()) {
    for (tensor_info& t : infos_) {
      by_name_[t.name] = &t;
      if (t.shape.size() != 2 || as_they_are.count(t.name) > 0) continue;
      const auto from = source_->matrix(t.name);
      const rounding how = from.ok() ? rounding_of(from.value(), kernels) : rounding{};
      if (how.group == 0) continue;
      roundings_[t.name] = how;
      t.type = "INT8";
      if (!how.keeps_codes) t.bytes = t.shape[0] * (t.shape[1] + 2 * (t.shape[1] / how.group));
    }
  }

  std::vector<tensor_info> tensors() const override { return infos_; }
  const tensor_info* find(std::string_view name) const override {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? source_->find(name) : at->second;
  }
  result<std::vector<float>> vector(std::string_view name) const override {
    return source_->vector(name);
  }
  void read_ahead(std::string_view name) const override { source_->read_ahead(name); }
  void release(std::string_view name) const override { source_->release(name); }

  result<gpu::weight_source> matrix(std::string_view name) const override {
    auto from = source_->matrix(name);
    const auto at = roundings_.find(name);
    if (!from.ok() || at == roundings_.end()) return from;
    const rounding how = at->second;
    gpu::weight_source rounded;
    rounded.kind =
        how.keeps_codes ? gpu::weight_kind::grouped_u4_as_u8 : gpu::weight_kind::grouped_u8;
    rounded.rows = from.value().rows;
    rounded.cols = from.value().cols;
    rounded.group = how.group;
    rounded.code_group = how.keeps_codes ? from.value().group : 0;
    rounded.column_order = from.value().column_order;
    rounded.grouped = [from = std::move(from).value(), how](std::int64_t row,
                                                            const gpu::grouped_row& out) {
      how.keeps_codes ? widen_row(from, how.group, row, out) : round_row(from, how.group, row, out);
    };
    return rounded;
  }

private:
  std::shared_ptr<const checkpoint> source_;
  std::vector<tensor_info> infos_;
  std::map<std::string, const tensor_info*, std::less<>> by_name_;
  std::map<std::string, rounding, std::less<>> roundings_;
};

} // namespace

std::shared_ptr<const checkpoint> rounded_to_8_bits(std::shared_ptr<const checkpoint> source,
                                                    const std::set<std::string>& as_they_are,
                                                    w8a8_kernels kernels) {
  return std::make_shared<w8a8_checkpoint>(std::move(source), as_they_are, kernels);
}

} // namespace twill::models
