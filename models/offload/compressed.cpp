#include "models/offload/compressed.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "models/detail/half.hpp"

namespace twill::models::offload {
namespace {

constexpr std::int32_t group_columns = 64;
constexpr float most = 15;

float value_at(const void* row, gpu::weight_kind kind, std::int64_t column) {
  if (kind == gpu::weight_kind::f32) {
    float value;
    std::memcpy(&value, static_cast<const unsigned char*>(row) + 4 * column, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, static_cast<const unsigned char*>(row) + 2 * column, sizeof bits);
  return kind == gpu::weight_kind::f16 ? widen_f16(bits) : widen_bf16(bits);
}

void compress_row(const gpu::weight_source& dense, std::int64_t row, const gpu::grouped_row& out) {
  const void* from = dense.dense_row(row);
  for (std::int64_t g = 0; g < dense.cols / group_columns; ++g) {
    const std::int64_t first = g * group_columns;
    float low = value_at(from, dense.kind, first), high = low;
    for (std::int64_t c = first; c < first + group_columns; ++c) {
      const float v = value_at(from, dense.kind, c);
      // Not min and max: what is not finite must reach the scales, where packing refuses it.
      low = v < low || !std::isfinite(v) ? v : low;
      high = v > high || !std::isfinite(v) ? v : high;
    }
    const float scale = (high - low) / most;
    out.scales[g] = scale;
    out.offsets[g] = low;
    for (std::int64_t c = first; c < first + group_columns; ++c) {
      const float step = scale > 0 ? (value_at(from, dense.kind, c) - low) / scale : 0;
      out.codes[c] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(step), 0.0F, most));
    }
  }
}

class compressed_checkpoint final : public checkpoint {
public:
  compressed_checkpoint(std::shared_ptr<const checkpoint> source, std::set<std::string> kept)
      : source_(std::move(source)), kept_(std::move(kept)) {}

  std::vector<tensor_info> tensors() const override { return source_->tensors(); }
  const tensor_info* find(std::string_view name) const override { return source_->find(name); }
  result<std::vector<float>> vector(std::string_view name) const override {
    return source_->vector(name);
  }
  void release(std::string_view name) const override { source_->release(name); }

  result<gpu::weight_source> matrix(std::string_view name) const override {
    auto dense = source_->matrix(name);
    if (!dense.ok() || dense.value().group > 0 || dense.value().cols % group_columns != 0 ||
        kept_.count(std::string(name)) != 0)
      return dense;
    gpu::weight_source small;
    small.kind = gpu::weight_kind::grouped_u4;
    small.rows = dense.value().rows;
    small.cols = dense.value().cols;
    small.group = group_columns;
    small.column_order = dense.value().column_order;
    small.grouped = [from = std::move(dense).value()](std::int64_t row,
                                                      const gpu::grouped_row& out) {
      compress_row(from, row, out);
    };
    return small;
  }

private:
  std::shared_ptr<const checkpoint> source_;
  std::set<std::string> kept_;
};

} // namespace

std::shared_ptr<const checkpoint> compressed(std::shared_ptr<const checkpoint> source,
                                             std::set<std::string> as_they_are) {
  return std::make_shared<compressed_checkpoint>(std::move(source), std::move(as_they_are));
}

} // namespace twill::models::offload
