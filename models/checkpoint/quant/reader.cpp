#include "models/checkpoint/quant/reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "models/checkpoint/half.hpp"

namespace twill::models::quant {
namespace {

// Number of rows of a panel, one for each lane.
constexpr std::int64_t lanes = 16;

std::uint32_t load_word(const std::byte* words, std::int64_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, words + index * 4, sizeof word);
  return word;
}

std::uint16_t load_half(const std::byte* halves, std::int64_t index) {
  std::uint16_t half = 0;
  std::memcpy(&half, halves + index * 2, sizeof half);
  return half;
}

/// awq_nibble[i] is the nibble of word j in which AWQ stores output 8j + i: the inverse of the
/// order 0 2 4 6 1 3 5 7.
constexpr std::array<std::int32_t, 8> awq_nibble = {0, 4, 1, 5, 2, 6, 3, 7};

/// Reads the code of output `row` from 32-bit words that each hold the codes of 8 (4-bit codes) or
/// 4 (8-bit codes) adjacent outputs. GPTQ and AWQ store zero points in such words, and AWQ also its
/// codes.
std::uint32_t code_along_row(const stored_codes& from, const std::byte* words, std::int64_t line,
                             std::int64_t row) {
  const std::int64_t per = 32 / from.bits;
  const std::uint32_t word = load_word(words, line * (from.parts.rows / per) + row / per);
  const std::int64_t within = row % per;
  const std::int64_t slot =
      from.rows_interleaved ? awq_nibble[static_cast<std::size_t>(within)] : within;
  return (word >> (slot * from.bits)) & ((1U << from.bits) - 1);
}

std::int64_t stored_column(const stored_codes& from, std::int64_t c) {
  return from.layout.order ? (*from.layout.order)[static_cast<std::size_t>(c)] : c;
}

/// For GPTQ with the columns in stored order: words of the file and of the packed matrix are equal.
void copy_words(const stored_codes& from, const gpu::grouped_rows& out, std::int64_t row_words) {
  for (std::int64_t w = 0; w < row_words; ++w) {
    const std::byte* line = from.parts.codes + (w * from.parts.rows + out.first_row) * 4;
    for (std::int64_t row = 0; row < out.n_rows; row += lanes) {
      std::uint32_t* to = out.words + row * row_words + w * lanes;
      const std::int64_t n = std::min(lanes, out.n_rows - row);
      if (n == lanes)
        std::memcpy(to, line + row * 4, lanes * 4);
      else
        std::memcpy(to, line + row * 4, static_cast<std::size_t>(n) * 4);
    }
  }
}

/// Packs GPTQ codes in another order of columns than the file has (act-order). Each code of a
/// packed word may therefore come from a different word of the file.
void gather_words(const stored_codes& from, const gpu::grouped_rows& out, std::int64_t row_words) {
  const std::int64_t per = 32 / from.bits;
  const std::uint32_t mask = (1U << from.bits) - 1;
  std::array<std::uint32_t, gpu::grouped_rows::most_rows> gathered;
  std::array<std::uint32_t, gpu::grouped_rows::most_rows> line{};
  const auto n = static_cast<std::size_t>(out.n_rows);
  for (std::int64_t w = 0; w < row_words; ++w) {
    gathered.fill(0);
    for (std::int64_t i = 0; i < per; ++i) {
      const std::int64_t column = stored_column(from, w * per + i);
      const auto down = static_cast<std::uint32_t>(column % per * from.bits);
      const auto up = static_cast<std::uint32_t>(i * from.bits);
      std::memcpy(line.data(),
                  from.parts.codes + (column / per * from.parts.rows + out.first_row) * 4, n * 4);
      for (std::size_t r = 0; r < line.size(); ++r)
        gathered[r] |= ((line[r] >> down) & mask) << up;
    }
    for (std::size_t row = 0; row < n; row += lanes)
      std::memcpy(out.words + static_cast<std::int64_t>(row) * row_words + w * lanes,
                  gathered.data() + row, std::min<std::size_t>(lanes, n - row) * 4);
  }
}

using word_lines = std::array<std::array<std::uint32_t, lanes>, 8>;

/// Each word has 8 nibbles (4-bit codes). Transposes 16 adjacent squares of 8 words: nibble i of
/// word n of a square becomes nibble n of its word i.
void transpose_nibbles(word_lines& a) {
  const auto swap = [&a](std::size_t apart, std::uint32_t low, std::uint32_t shift) {
    for (std::size_t i = 0; i < 8; ++i) {
      if ((i & apart) != 0) continue;
      for (std::size_t l = 0; l < lanes; ++l) {
        const std::uint32_t x = a[i][l], y = a[i + apart][l];
        a[i][l] = (x & low) | ((y & low) << shift);
        a[i + apart][l] = ((x >> shift) & low) | (y & ~low);
      }
    }
  };
  swap(4, 0x0000ffffU, 16);
  swap(2, 0x00ff00ffU, 8);
  swap(1, 0x0f0f0f0fU, 4);
}

} // namespace

void read_terms(const stored_codes& from, std::int64_t first, std::int64_t n, float* scales,
                float* offsets) {
  const auto groups = static_cast<std::int64_t>(from.layout.stored_group.size());
  const std::uint32_t mask = (1U << from.bits) - 1;
  const bool f16 = from.parts.scale_kind == gpu::weight_kind::f16;
  // A 32-bit word holds the zero points of `per` rows, each in its own nibble or byte. Rows whose
  // zero points are in the same word are read together.
  const std::int64_t per = 32 / from.bits;
  const std::int64_t end = first + n;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t line = from.layout.stored_group[static_cast<std::size_t>(g)];
    for (std::int64_t row = first; row < end;) {
      const std::uint32_t word =
          load_word(from.parts.zeros, line * (from.parts.rows / per) + row / per);
      const std::int64_t end_of_word = std::min(end, (row / per + 1) * per);
      for (std::int64_t slot = row % per; row < end_of_word; ++row, ++slot) {
        const std::uint16_t bits = load_half(from.parts.scales, line * from.parts.rows + row);
        const float scale = f16 ? widen_f16(bits) : widen_bf16(bits);
        const std::int64_t place =
            from.rows_interleaved ? awq_nibble[static_cast<std::size_t>(slot)] : slot;
        const std::uint32_t zero =
            ((word >> (place * from.bits)) + static_cast<std::uint32_t>(from.zero_added)) & mask;
        scales[(row - first) * groups + g] = scale;
        offsets[(row - first) * groups + g] = -(static_cast<float>(zero) * scale);
      }
    }
  }
}

void read_row(const stored_codes& from, std::int64_t row, const gpu::grouped_row& out) {
  const std::int64_t per = 32 / from.bits;
  const std::uint32_t mask = (1U << from.bits) - 1;
  for (std::int64_t c = 0; c < from.parts.cols; ++c) {
    const std::int64_t column = stored_column(from, c);
    const std::uint32_t code =
        from.rows_interleaved
            ? code_along_row(from, from.parts.codes, column, row)
            : (load_word(from.parts.codes, column / per * from.parts.rows + row) >>
               (column % per * from.bits)) &
                  mask;
    out.codes[c] = static_cast<std::uint8_t>(code);
  }
  read_terms(from, row, 1, out.scales, out.offsets);
}

void read_gptq_rows(const stored_codes& from, const gpu::grouped_rows& out) {
  const std::int64_t row_words = out.words == nullptr ? 0 : from.parts.cols / (32 / from.bits);
  if (from.layout.order)
    gather_words(from, out, row_words);
  else
    copy_words(from, out, row_words);
  read_terms(from, out.first_row, out.n_rows, out.scales, out.offsets);
}

void read_awq_rows(const stored_codes& from, const gpu::grouped_rows& out) {
  const std::int64_t row_words = out.words == nullptr ? 0 : from.parts.cols / 8;
  const std::int64_t stored_line = from.parts.rows / 8; // words per column
  const std::int64_t n_words = out.n_rows / 8;
  // The loop prefetches columns `ahead` words before it reads them: each column's words lie on
  // another memory page, and the hardware prefetcher does not cross pages.
  constexpr std::int64_t ahead = 4;
  word_lines lines{};
  const auto line_at = [&](std::int64_t column) {
    return from.parts.codes + (column * stored_line + out.first_row / 8) * 4;
  };
  for (std::int64_t w = 0; w < row_words; ++w) {
    for (std::int64_t i = 0; i < 8; ++i) {
      __builtin_prefetch(line_at(std::min(w + ahead, row_words - 1) * 8 + i));
      std::memcpy(lines[static_cast<std::size_t>(i)].data(), line_at(w * 8 + i),
                  static_cast<std::size_t>(n_words) * 4);
    }
    transpose_nibbles(lines);
    for (std::int64_t word = 0; word < n_words; ++word) {
      std::uint32_t* to = out.words + word / 2 * lanes * row_words + w * lanes + word % 2 * 8;
      for (std::size_t i = 0; i < 8; ++i)
        to[i] = lines[static_cast<std::size_t>(awq_nibble[i])][static_cast<std::size_t>(word)];
    }
  }
  read_terms(from, out.first_row, out.n_rows, out.scales, out.offsets);
}

} // namespace twill::models::quant
