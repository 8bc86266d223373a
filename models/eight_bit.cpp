#include "models/eight_bit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "models/detail/element.hpp"

namespace twill::models {
namespace {

constexpr std::int64_t most_columns = 256; ///< of a group
constexpr float most = 127;
constexpr float middle = 128; ///< the code of zero

/// Below this a group is zero for every purpose, and the reciprocal of its scale may overflow.
constexpr float least = 1e-30F;

/// 0: there is none.
std::int32_t group_of(std::int64_t columns) {
  for (const std::int64_t step : {32, 8})
    for (std::int64_t group = most_columns; group > 0; group -= step)
      if (columns % group == 0) return static_cast<std::int32_t>(group);
  return 0;
}

/// Not below x and at most 2^-10 above: in 11 bits, so that packed scales are f16 where they are
/// in its range, and no code exceeds `most`.
float rounded_up(float x) {
  constexpr std::uint32_t below = (1U << 13) - 1;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + below) & ~below);
}

/// The largest magnitude, or NaN where a value is not finite.
float largest(const float* values, std::int32_t n) {
  float top = 0, zero = 0;
  for (std::int32_t i = 0; i < n; ++i) {
    top = std::max(top, std::abs(values[i]));
    zero += values[i] * 0;
  }
  return zero == 0 ? top : std::numeric_limits<float>::quiet_NaN();
}

/// Row `row` as f32: exact for dense kinds, scale * code + offset for grouped ones.
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
      out.scales[g] = out.offsets[g] = top < 1 ? 0 : top; // packing refuses what is not finite
      continue;
    }
    const float scale = rounded_up(top / most), steps = 1 / scale;
    out.scales[g] = scale;
    out.offsets[g] = -middle * scale;
    for (std::int32_t c = 0; c < group; ++c)
      codes[c] = static_cast<std::uint8_t>(steps * v[c] + (middle + 0.5F));
  }
}

class eight_bit_checkpoint final : public checkpoint {
public:
  eight_bit_checkpoint(std::shared_ptr<const checkpoint> source,
                       const std::set<std::string>& as_they_are)
      : source_(std::move(source)), infos_(source_->tensors()) {
    for (tensor_info& t : infos_) {
      const std::int32_t group = t.shape.size() == 2 ? group_of(t.shape[1]) : 0;
      if (group > 0 && as_they_are.count(t.name) == 0) {
        t.type = "INT8";
        t.bytes = t.shape[0] * (t.shape[1] + 2 * (t.shape[1] / group));
        groups_[t.name] = group;
      }
      by_name_[t.name] = &t;
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
  void release(std::string_view name) const override { source_->release(name); }

  result<gpu::weight_source> matrix(std::string_view name) const override {
    auto from = source_->matrix(name);
    const auto group = groups_.find(name);
    if (!from.ok() || group == groups_.end()) return from;
    gpu::weight_source rounded;
    rounded.kind = gpu::weight_kind::grouped_u8;
    rounded.rows = from.value().rows;
    rounded.cols = from.value().cols;
    rounded.group = group->second;
    rounded.column_order = from.value().column_order;
    rounded.grouped = [from = std::move(from).value(),
                       columns = group->second](std::int64_t row, const gpu::grouped_row& out) {
      round_row(from, columns, row, out);
    };
    return rounded;
  }

private:
  std::shared_ptr<const checkpoint> source_;
  std::vector<tensor_info> infos_;
  std::map<std::string, const tensor_info*, std::less<>> by_name_;
  std::map<std::string, std::int32_t, std::less<>> groups_;
};

} // namespace

std::shared_ptr<const checkpoint> rounded_to_8_bits(std::shared_ptr<const checkpoint> source,
                                                    const std::set<std::string>& as_they_are) {
  return std::make_shared<eight_bit_checkpoint>(std::move(source), as_they_are);
}

} // namespace twill::models
