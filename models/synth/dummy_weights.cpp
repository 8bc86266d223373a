// dummy_weights: a checkpoint whose rows are generated when they are read.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "models/checkpoint/derived_tensor.hpp"
#include "models/checkpoint/half.hpp"
#include "models/synth/dummy.hpp"
#include "models/synth/fill.hpp"

namespace twill::models::synth {
namespace {

/// Returns memory for one row, which belongs to the calling thread. The last 16 rows of a thread
/// stay valid, so that a caller may look at several at a time.
std::byte* next_row_buffer(std::size_t bytes) {
  thread_local std::array<std::vector<std::byte>, 16> ring;
  thread_local std::size_t turn = 0;
  std::vector<std::byte>& row = ring[turn++ % ring.size()];
  if (row.size() < bytes) row.resize(bytes);
  return row.data();
}

gpu::weight_source dense_source(const planned_tensor& t, std::uint64_t seed) {
  gpu::weight_source source;
  source.kind = t.type == element::f32   ? gpu::weight_kind::f32
                : t.type == element::f16 ? gpu::weight_kind::f16
                                         : gpu::weight_kind::bf16;
  source.rows = t.rows();
  source.cols = t.row_values();
  const auto filler = std::make_shared<const tensor_filler>(t, seed);
  const auto row_bytes = static_cast<std::size_t>(t.row_bytes());
  source.dense_row = [filler, row_bytes](std::int64_t row) -> const void* {
    std::byte* out = next_row_buffer(row_bytes);
    filler->fill(row, 1, out);
    return out;
  };
  return source;
}

/// Reads a packed module by single rows or by blocks of rows, as packing requests them.
class grouped_reader {
public:
  grouped_reader(const packed_module& m, std::uint64_t seed)
      : source_(m, seed), order_(source_.column_order()) {}

  const std::shared_ptr<const std::vector<std::int32_t>>& order() const { return order_; }

  void row(std::int64_t r, const gpu::grouped_row& out) const {
    const packed_module& m = source_.module();
    const std::int64_t per_word = source_.codes_per_word();
    const std::uint64_t mask = m.bits == 4 ? 15 : 255;
    std::int64_t have = -1;
    std::uint64_t word = 0;
    for (std::int64_t c = 0; c < m.cols; ++c) {
      const std::int64_t column = order_ ? (*order_)[static_cast<std::size_t>(c)] : c;
      if (column / per_word != have) word = source_.code_word(r, have = column / per_word);
      out.codes[c] = static_cast<std::uint8_t>((word >> (m.bits * (column % per_word))) & mask);
    }
    terms(r, out.scales, out.offsets);
  }

  void block(const gpu::grouped_rows& out) const {
    const packed_module& m = source_.module();
    const std::int64_t words = m.cols * m.bits / 32;
    const bool wanted = out.words != nullptr;
    std::vector<std::uint8_t> codes(wanted && order_ ? static_cast<std::size_t>(m.cols) : 0);
    for (std::int64_t i = 0; i < out.n_rows; ++i) {
      const std::int64_t r = out.first_row + i;
      std::uint32_t* to = wanted ? out.words + i / 16 * words * 16 + i % 16 : nullptr;
      float* scales = out.scales + i * m.groups();
      float* offsets = out.offsets + i * m.groups();
      if (wanted && order_) {
        row(r, {codes.data(), scales, offsets});
        put_codes(codes, to);
      } else {
        terms(r, scales, offsets);
        for (std::int64_t w = 0; wanted && w < words; ++w)
          to[w * 16] = static_cast<std::uint32_t>(source_.code_word(r, w / 2) >> (32 * (w % 2)));
      }
    }
  }

private:
  void terms(std::int64_t r, float* scales, float* offsets) const {
    for (std::int64_t g = 0; g < source_.module().groups(); ++g) {
      scales[g] = widen_f16(source_.scale_bits(g, r));
      offsets[g] = -static_cast<float>(source_.zero(g, r)) * scales[g];
    }
  }

  void put_codes(const std::vector<std::uint8_t>& codes, std::uint32_t* to) const {
    const int bits = source_.module().bits;
    const std::size_t per = static_cast<std::size_t>(32 / bits);
    for (std::size_t c = 0; c < codes.size(); c += per, to += 16) {
      std::uint32_t packed = 0;
      for (std::size_t k = 0; k < per; ++k)
        packed |= static_cast<std::uint32_t>(codes[c + k]) << (static_cast<std::size_t>(bits) * k);
      *to = packed;
    }
  }

  module_source source_;
  std::shared_ptr<const std::vector<std::int32_t>> order_;
};

gpu::weight_source grouped_source(const packed_module& m, std::uint64_t seed) {
  const auto reader = std::make_shared<const grouped_reader>(m, seed);
  gpu::weight_source source;
  source.kind = m.bits == 4 ? gpu::weight_kind::grouped_u4 : gpu::weight_kind::grouped_u8;
  source.rows = m.rows;
  source.cols = m.cols;
  source.group = static_cast<std::int32_t>(m.group);
  source.column_order = reader->order();
  source.grouped = [reader](std::int64_t row, const gpu::grouped_row& out) {
    reader->row(row, out);
  };
  source.grouped_panels = [reader](const gpu::grouped_rows& out) { reader->block(out); };
  return source;
}

class dummy_weights final : public checkpoint {
public:
  explicit dummy_weights(const recipe& r) : seed_(r.seed) {
    for (planned_tensor& t : plan_tensors(r)) {
      const bool packed = t.module != nullptr;
      if (!packed && is_derived({t.name, t.shape, name_of(t.type), t.bytes()})) continue;
      const std::string name = packed ? t.module->name + ".weight" : t.name;
      const auto [at, first] = by_name_.try_emplace(name);
      entry& e = at->second;
      e.info.name = name;
      e.info.bytes += t.bytes();
      if (!first) continue;
      order_.push_back(name);
      if (packed) {
        e.info.shape = {t.module->rows, t.module->cols};
        e.info.type =
            (t.module->kind == packing::awq ? "AWQ-" : "GPTQ-") + std::to_string(t.module->bits);
      } else {
        e.info.shape = t.shape;
        e.info.type = name_of(t.type);
      }
      e.tensor = std::move(t);
    }
  }

  std::vector<tensor_info> tensors() const override {
    std::vector<tensor_info> all;
    for (const std::string& name : order_)
      all.push_back(by_name_.find(name)->second.info);
    return all;
  }

  const tensor_info* find(std::string_view name) const override {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &at->second.info;
  }

  result<gpu::weight_source> matrix(std::string_view name) const override {
    auto found = require(name);
    if (!found.ok()) return found.error();
    const planned_tensor& t = found.value()->tensor;
    if (t.module) return grouped_source(*t.module, seed_);
    if (t.shape.size() != 2)
      return failure{errc::bad_tensor, "tensor `" + t.name + "` must be a matrix, got " +
                                           std::to_string(t.shape.size()) + " dimensions"};
    return dense_source(t, seed_);
  }

  result<std::vector<float>> vector(std::string_view name) const override {
    auto found = require(name);
    if (!found.ok()) return found.error();
    const planned_tensor& t = found.value()->tensor;
    if (t.module)
      return failure{errc::bad_tensor, "tensor `" + std::string(name) + "` is a packed matrix"};
    return values_of(t, seed_);
  }

private:
  struct entry {
    tensor_info info;
    planned_tensor tensor;
  };

  result<const entry*> require(std::string_view name) const {
    const auto at = by_name_.find(name);
    if (at == by_name_.end())
      return failure{errc::missing_tensor,
                     "tensor `" + std::string(name) + "` is not in the checkpoint"};
    return &at->second;
  }

  std::uint64_t seed_;
  std::vector<std::string> order_;
  std::map<std::string, entry, std::less<>> by_name_;
};

} // namespace

std::shared_ptr<const checkpoint> make_dummy_weights(const recipe& r) {
  return std::make_shared<const dummy_weights>(r);
}

} // namespace twill::models::synth
