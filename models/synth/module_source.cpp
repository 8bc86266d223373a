// Generates the numbers of linear layers quantised by GPTQ or AWQ, in the layouts in which
// checkpoints store them.
//
// AutoGPTQ packs codes along the input dimension, and zero points along the output dimension; it
// stores each zero point minus 1. The GEMM version of AutoAWQ packs both along the output
// dimension, in awq_order, and stores zero points unchanged.
#include <algorithm>
#include <cstring>

#include "models/synth/fill.hpp"
#include "models/synth/narrow.hpp"
#include "models/synth/random.hpp"

namespace twill::models::synth {

module_source::module_source(const packed_module& m, std::uint64_t seed)
    : module_(m), codes_key_(stream_key(seed, m.name + ".qweight")),
      zeros_key_(stream_key(seed, m.name + ".qzeros")),
      scales_key_(stream_key(seed, m.name + ".scales")),
      order_key_(stream_key(seed, m.order_stream + ".g_idx")),
      words_per_row_((m.cols + codes_per_word() - 1) / codes_per_word()) {
  for (std::size_t i = 0; i < scale_table_.size(); ++i) // 0.8 to 1.2 times the module's scale
    scale_table_[i] =
        narrow_f16(static_cast<float>(m.scale * (0.8 + 0.4 * static_cast<double>(i) / 255)));
}

std::uint64_t module_source::code_word(std::int64_t row, std::int64_t word) const {
  const std::uint64_t w =
      random_word(codes_key_, static_cast<std::uint64_t>(row * words_per_row_ + word));
  // Code 0 is replaced by the middle code. The remaining codes are symmetric around the middle, so
  // weights have mean 0.
  if (module_.bits == 4) {
    const std::uint64_t set = w | w >> 1 | w >> 2 | w >> 3;
    return w | (~set & 0x1111111111111111U) << 3;
  }
  std::uint64_t set = w | w >> 4;
  set |= set >> 2;
  set |= set >> 1;
  return w | (~set & 0x0101010101010101U) << 7;
}

std::uint32_t module_source::zero(std::int64_t group, std::int64_t row) const {
  const std::uint32_t middle = module_.bits == 4 ? 8 : 128;
  if (module_.symmetric) return middle;
  const std::int64_t at = group * module_.rows + row;
  const auto byte = static_cast<std::uint32_t>(
      (random_word(zeros_key_, static_cast<std::uint64_t>(at / 8)) >> (8 * (at % 8))) & 0xffU);
  return module_.bits == 4 ? middle - 2 + byte % 5 : middle - 30 + byte % 61;
}

std::uint16_t module_source::scale_bits(std::int64_t group, std::int64_t row) const {
  const std::int64_t at = group * module_.rows + row;
  return scale_table_[(random_word(scales_key_, static_cast<std::uint64_t>(at / 8)) >>
                       (8 * (at % 8))) &
                      0xffU];
}

std::vector<std::int32_t> module_source::group_index() const {
  std::vector<std::int32_t> index(static_cast<std::size_t>(module_.cols));
  for (std::int64_t i = 0; i < module_.cols; ++i)
    index[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i / module_.group);
  if (!module_.act_order) return index;
  for (std::size_t i = index.size() - 1; i > 0; --i) // Fisher-Yates shuffle
    std::swap(index[i], index[random_word(order_key_, i) % (i + 1)]);
  return index;
}

std::shared_ptr<const std::vector<std::int32_t>> module_source::column_order() const {
  if (!module_.act_order) return nullptr;
  const std::vector<std::int32_t> index = group_index();
  if (std::is_sorted(index.begin(), index.end())) return nullptr;
  std::vector<std::int32_t> order(index.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return index[static_cast<std::size_t>(a)] < index[static_cast<std::size_t>(b)];
  });
  return std::make_shared<const std::vector<std::int32_t>>(std::move(order));
}

void module_source::fill_gptq_codes(std::int64_t row, std::uint32_t* out) const {
  for (std::int64_t o = 0; o < module_.rows; ++o)
    out[o] = static_cast<std::uint32_t>(code_word(o, row / 2) >> (32 * (row % 2)));
}

void module_source::fill_awq_codes(std::int64_t first, std::int64_t n, std::uint32_t* out) const {
  const std::int64_t width = module_.rows / 8;
  for (std::int64_t row = first; row < first + n;) {
    // One word holds the codes of 16 input rows, so it is generated once for all of them.
    const std::int64_t end = std::min(first + n, (row / 16 + 1) * 16);
    for (std::int64_t j = 0; j < width; ++j) {
      std::array<std::uint64_t, 8> words;
      for (std::size_t k = 0; k < 8; ++k)
        words[k] = code_word(8 * j + awq_order[k], row / 16);
      for (std::int64_t i = row; i < end; ++i) {
        std::uint32_t packed = 0;
        for (std::size_t k = 0; k < 8; ++k)
          packed |= static_cast<std::uint32_t>((words[k] >> (4 * (i % 16))) & 15U) << (4 * k);
        out[(i - first) * width + j] = packed;
      }
    }
    row = end;
  }
}

void module_source::fill_codes(std::int64_t first, std::int64_t n, std::uint32_t* out) const {
  if (module_.kind == packing::awq) return fill_awq_codes(first, n, out);
  for (std::int64_t i = 0; i < n; ++i)
    fill_gptq_codes(first + i, out + i * module_.rows);
}

void module_source::fill_zeros(std::int64_t first, std::int64_t n, std::uint32_t* out) const {
  const std::int64_t per_word = 32 / module_.bits;
  const bool gptq = module_.kind == packing::gptq;
  for (std::int64_t g = first; g < first + n; ++g)
    for (std::int64_t j = 0; j < module_.rows / per_word; ++j) {
      std::uint32_t packed = 0;
      for (std::int64_t k = 0; k < per_word; ++k) {
        const std::int64_t o = j * per_word + (gptq ? k : awq_order[static_cast<std::size_t>(k)]);
        packed |= (zero(g, o) - (gptq ? 1U : 0U)) << (module_.bits * k);
      }
      *out++ = packed;
    }
}

void module_source::fill_scales(std::int64_t first, std::int64_t n, std::uint16_t* out) const {
  for (std::int64_t g = first; g < first + n; ++g)
    for (std::int64_t o = 0; o < module_.rows; ++o)
      *out++ = scale_bits(g, o);
}

} // namespace twill::models::synth
