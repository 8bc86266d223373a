// A random GPTQ or AWQ matrix: its packed tensors, and its values by the definition of the format,
// computed naively from unpacked numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "models/checkpoint/half.hpp"
#include "tests/models/support/safetensors_writer.hpp"

namespace twill::test {

struct quantised_shape {
  std::int64_t rows, cols;
  int bits = 4;
  std::int64_t group = 32; ///< -1: all columns
  bool act_order = false;
  bool awq = false;
  bool zeros_less_one = true;
  bool symmetric = false;
  unsigned seed = 1;
};

class quantised_matrix {
public:
  explicit quantised_matrix(const quantised_shape& s) : s_(s), random_(s.seed) {
    const std::int64_t group = s.group < 0 ? s.cols : s.group;
    groups_ = (s.cols + group - 1) / group;
    for (std::int64_t c = 0; c < s.cols; ++c)
      group_of_.push_back(static_cast<std::int32_t>(c / group));
    if (s.act_order) std::shuffle(group_of_.begin(), group_of_.end(), random_);
    const int most = (1 << s.bits) - 1;
    for (std::int64_t i = 0; i < s.rows * s.cols; ++i)
      codes_.push_back(draw(0, most));
    for (std::int64_t i = 0; i < groups_ * s.rows; ++i) {
      zeros_.push_back(s.symmetric ? 1 << (s.bits - 1) : draw(0, most));
      scales_.push_back(static_cast<std::uint16_t>(draw(0x1000, 0x3000) | draw(0, 1) << 15));
    }
  }

  /// scale * (code - zero). // (rows, cols)
  std::vector<double> values() const {
    std::vector<double> all;
    for (std::int64_t r = 0; r < s_.rows; ++r)
      for (std::int64_t c = 0; c < s_.cols; ++c) {
        const std::size_t at = term(group_of_[static_cast<std::size_t>(c)], r);
        all.push_back(double{models::widen_f16(scales_[at])} *
                      (codes_[static_cast<std::size_t>(r * s_.cols + c)] - zeros_[at]));
      }
    return all;
  }

  void add_to(safetensors_writer& w, const std::string& stem) const {
    const std::int64_t per = 32 / s_.bits;
    w.add(stem + ".qweight", "I32",
          s_.awq ? shape{s_.cols, s_.rows / per} : shape{s_.cols / per, s_.rows}, pack_codes());
    w.add(stem + ".qzeros", "I32", {groups_, s_.rows / per}, pack_zeros());
    w.add(stem + ".scales", "F16", {groups_, s_.rows}, raw_values(scales_));
    if (!s_.awq) w.add(stem + ".g_idx", "I32", {s_.cols}, raw_values(group_of_));
  }

  /// config.json with this matrix's quantization_config.
  std::string config() const {
    return std::string(R"({"quantization_config": {"quant_method": ")") +
           (s_.awq ? "awq" : "gptq") + R"(", "bits": )" + std::to_string(s_.bits) +
           R"(, "group_size": )" + std::to_string(s_.group) +
           (s_.zeros_less_one ? "" : R"(, "checkpoint_format": "gptq_v2")") + "}}";
  }

private:
  using shape = std::vector<std::int64_t>;

  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::size_t term(std::int64_t group, std::int64_t row) const {
    return static_cast<std::size_t>(group * s_.rows + row);
  }

  std::string pack_codes() const {
    const std::int64_t per = 32 / s_.bits;
    if (s_.awq)
      return pack_lines(s_.cols, [&](std::int64_t c, std::int64_t r) {
        return codes_[static_cast<std::size_t>(r * s_.cols + c)];
      });
    std::vector<std::uint32_t> words(static_cast<std::size_t>(s_.cols / per * s_.rows), 0);
    for (std::int64_t r = 0; r < s_.rows; ++r)
      for (std::int64_t c = 0; c < s_.cols; ++c)
        words[static_cast<std::size_t>(c / per * s_.rows + r)] |=
            static_cast<std::uint32_t>(codes_[static_cast<std::size_t>(r * s_.cols + c)])
            << (c % per * s_.bits);
    return raw_values(words);
  }

  std::string pack_zeros() const {
    const int mask = (1 << s_.bits) - 1;
    return pack_lines(groups_, [&](std::int64_t g, std::int64_t r) {
      return (zeros_[term(g, r)] - (!s_.awq && s_.zeros_less_one ? 1 : 0)) & mask;
    });
  }

  /// Packs neighbouring rows of each line into words; AWQ's rows in the order 0 2 4 6 1 3 5 7.
  template <class F>
  std::string pack_lines(std::int64_t lines, const F& number) const {
    const std::int64_t per = 32 / s_.bits;
    const std::vector<std::int64_t> awq_order = {0, 2, 4, 6, 1, 3, 5, 7};
    std::vector<std::uint32_t> words;
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t first = 0; first < s_.rows; first += per) {
        std::uint32_t word = 0;
        for (std::int64_t i = 0; i < per; ++i)
          word |= static_cast<std::uint32_t>(
                      number(line, first + (s_.awq ? awq_order[static_cast<std::size_t>(i)] : i)))
                  << (i * s_.bits);
        words.push_back(word);
      }
    return raw_values(words);
  }

  quantised_shape s_;
  std::mt19937 random_;
  std::int64_t groups_ = 0;
  std::vector<std::int32_t> group_of_; // (cols)
  std::vector<int> codes_;             // (rows, cols)
  std::vector<int> zeros_;             // (groups, rows)
  std::vector<std::uint16_t> scales_;  // (groups, rows)
};

} // namespace twill::test
