#include "models/offload/int4_weights.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/checkpoint/element.hpp"

namespace twill::models::offload {
namespace {

constexpr std::int32_t group_columns = 64;
constexpr float most = 15;

void compress_row(const gpu::weight_source& dense, std::int64_t row, const gpu::grouped_row& out) {
  std::vector<float> values(static_cast<std::size_t>(dense.cols));
  widen_values(dense.kind, static_cast<const std::byte*>(dense.dense_row(row)), dense.cols,
               values.data());
  for (std::int64_t g = 0; g < dense.cols / group_columns; ++g) {
    const float* v = values.data() + g * group_columns;
    float low = v[0], high = low;
    for (std::int32_t c = 0; c < group_columns; ++c) {
      // std::min and std::max would ignore a NaN. Values that are not finite must reach the scales,
      // because packing refuses scales that are not finite.
      low = v[c] < low || !std::isfinite(v[c]) ? v[c] : low;
      high = v[c] > high || !std::isfinite(v[c]) ? v[c] : high;
    }
    const float scale = (high - low) / most;
    out.scales[g] = scale;
    out.offsets[g] = low;
    for (std::int32_t c = 0; c < group_columns; ++c) {
      const float step = scale > 0 ? (v[c] - low) / scale : 0;
      out.codes[g * group_columns + c] =
          static_cast<std::uint8_t>(std::clamp(std::nearbyint(step), 0.0F, most));
    }
  }
}

class int4_checkpoint final : public checkpoint {
public:
  int4_checkpoint(std::shared_ptr<const checkpoint> source, std::set<std::string> kept)
      : source_(std::move(source)), kept_(std::move(kept)) {}

  std::vector<tensor_info> tensors() const override { return source_->tensors(); }
  const tensor_info* find(std::string_view name) const override { return source_->find(name); }
  result<std::vector<float>> vector(std::string_view name) const override {
    return source_->vector(name);
  }
  void read_ahead(std::string_view name) const override { source_->read_ahead(name); }
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

std::shared_ptr<const checkpoint> int4_weights(std::shared_ptr<const checkpoint> source,
                                               std::set<std::string> as_they_are) {
  return std::make_shared<int4_checkpoint>(std::move(source), std::move(as_they_are));
}

} // namespace twill::models::offload
