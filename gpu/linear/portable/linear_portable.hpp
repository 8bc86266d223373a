// linear()'s portable form: Kokkos kernels for any execution space, from the packed layout of all
// forms. A team multiplies half a row panel with up to four rows of activations.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/portable/launch.hpp"
#include "gpu/portable/team_sums.hpp"

namespace twill::gpu::detail {

/// Activations rounded to the integers of int8 or int8x2; the residual is part of one integer here.
struct quantised {
  short* values; // (m, cols)
  float* scales; // (m, groups of 32)
  std::int64_t groups;
  float largest_code;
};

template <class Launch>
void quantise(device& dev, const packed_view& w, const tensor_ref& x, const quantised& q) {
  const float* from = x.as<const float>();
  const std::int64_t stride = x.row_stride;
  const std::int64_t cols = w.cols;
  const std::int64_t groups = q.groups;
  Launch::items(
      dev, "linear_quantise", x.rows() * groups, KOKKOS_LAMBDA(const long i) {
        const std::int64_t row = i / groups;
        const std::int64_t begin = i % groups * activation_group;
        const std::int64_t end = begin + activation_group < cols ? begin + activation_group : cols;
        const float* values = from + row * stride;
        float largest = 0;
        for (std::int64_t k = begin; k < end; ++k) {
          const float a = values[k] < 0 ? -values[k] : values[k];
          largest = a > largest ? a : largest;
        }
        const float inverse = largest > 1e-30F ? q.largest_code / largest : 0.0F;
        q.scales[i] = largest > 1e-30F ? largest / q.largest_code : 0.0F;
        for (std::int64_t k = begin; k < end; ++k) {
          const float magic = 12582912.0F; // 1.5 * 2^23: adding it rounds to an integer
          const float rounded = (values[k] * inverse + magic) - magic;
          q.values[row * cols + k] = static_cast<short>(rounded);
        }
      });
}

/// Copies x's columns to `to` in the order of the weights' columns. // to: (m, cols)
template <class Launch>
void gather_columns(device& dev, const tensor_ref& x, const std::int32_t* order, std::int64_t cols,
                    float* to) {
  const float* from = x.as<const float>();
  const std::int64_t stride = x.row_stride;
  Launch::items(
      dev, "linear_gather", x.rows() * cols, KOKKOS_LAMBDA(const long i) {
        const std::int64_t row = i / cols;
        to[i] = from[row * stride + order[i - row * cols]];
      });
}

TWILL_KERNEL_FUNCTION float round_for(bool bf16, float x) {
  return bf16 ? bf16_to_f32(f32_to_bf16(x)) : x;
}

/// Pieces of 16 aligned bytes, which a GPU loads at once.
struct alignas(16) four_words {
  std::uint32_t word[4];
};
struct alignas(16) four_floats {
  float value[4];
};
struct alignas(16) eight_shorts {
  short value[8];
};

/// Outputs that a team computes of each row: the half of a row panel, whose codes lie together.
inline constexpr int team_outputs = 8;

/// out = x * W^T for half a row panel and up to `Rows` rows of x. Lanes take column octets in turn;
/// the order of a sum depends on the columns and the number of lanes alone, so a row has the same
/// bits in any batch.
template <class Member, int Rows>
struct linear_team {
  using sums = team_sums<float, Rows * team_outputs>;

  packed_view w;
  const float* x; // (m, cols) f32
  std::int64_t m, x_stride;
  bool vectors; ///< x may be read in aligned pieces of 16 bytes
  bool int8, bf16;
  quantised q; ///< x as integers, with int8
  const float* bias;
  float* out;
  std::int64_t out_stride;
  bool accumulate;

  /// Octet `octet` of a row, rounded; columns beyond the last are zero.
  KOKKOS_INLINE_FUNCTION void load_row(std::int64_t row, std::int64_t octet,
                                       float (&to)[column_octet]) const {
    const std::int64_t first = octet * column_octet;
    const float* from = x + row * x_stride + first;
    if (vectors) {
      const four_floats low = *reinterpret_cast<const four_floats*>(from);
      const four_floats high = *reinterpret_cast<const four_floats*>(from + 4);
      for (int c = 0; c < 4; ++c) {
        to[c] = low.value[c];
        to[c + 4] = high.value[c];
      }
    } else {
      for (int c = 0; c < column_octet; ++c)
        to[c] = first + c < w.cols ? from[c] : 0.0f;
    }
    for (int c = 0; c < column_octet; ++c)
      to[c] = round_for(bf16, to[c]);
  }

  /// 32 bytes of an array.
  KOKKOS_INLINE_FUNCTION static void load_words(const unsigned char* from,
                                                std::uint32_t (&to)[team_outputs]) {
    const four_words low = *reinterpret_cast<const four_words*>(from);
    const four_words high = *reinterpret_cast<const four_words*>(from + 16);
    for (int i = 0; i < 4; ++i) {
      to[i] = low.word[i];
      to[i + 4] = high.word[i];
    }
  }

  /// The codes of one octet of half a panel, as they lie.
  struct code_words {
    std::uint32_t first[team_outputs], second[team_outputs];
  };
  KOKKOS_INLINE_FUNCTION code_words load_codes(std::int64_t panel, int half,
                                               std::int64_t octet) const {
    code_words words{};
    const unsigned char* from = w.codes + panel * w.codes_stride + half * 32;
    if (w.kind == weight_kind::grouped_u8) {
      load_words(from + octet * 2 * code_line_bytes, words.first);
      load_words(from + (octet * 2 + 1) * code_line_bytes, words.second);
    } else {
      load_words(from + octet * code_line_bytes, words.first);
      for (int i = 0; i < team_outputs; ++i)
        words.second[i] = words.first[i] >> 4;
    }
    return words;
  }
  /// The codes of lane `lane` of the panel, whose number in its half is `i`.
  KOKKOS_INLINE_FUNCTION void codes_of(const code_words& words, int i, std::int64_t panel,
                                       std::int64_t lane, std::int64_t octet,
                                       std::int32_t (&code)[column_octet]) const {
    const std::uint32_t mask = w.kind == weight_kind::grouped_u8 ? 255u : 15u;
    for (int c = 0; c < 4; ++c) {
      code[c] = static_cast<std::int32_t>(words.first[i] >> (8 * c) & mask);
      code[c + 4] = static_cast<std::int32_t>(words.second[i] >> (8 * c) & mask);
    }
    if (w.kind == weight_kind::grouped_u4_as_u8) { // see code_at()
      const std::int64_t column = octet * column_octet;
      const auto* line = reinterpret_cast<const std::uint16_t*>(
          w.scales + panel * w.scales_stride + column / w.group * w.params_stride +
          (1 + column % w.group / w.code_group) * code_line_bytes);
      for (int c = 0; c < column_octet; ++c)
        code[c] = static_cast<std::uint16_t>(line[lane] * code[c] + line[lanes + lane]) >> 8;
    }
  }

  KOKKOS_INLINE_FUNCTION void add_grouped(std::int64_t first_row, std::int64_t panel, int half,
                                          std::int64_t octet, sums& part) const {
    float values[Rows][column_octet] = {};
    for (int r = 0; r < Rows; ++r)
      if (first_row + r < m) load_row(first_row + r, octet, values[r]);
    const code_words words = load_codes(panel, half, octet);
    for (int i = 0; i < team_outputs; ++i) {
      const int lane = half * team_outputs + i;
      const scale_offset t = group_params(w, panel, lane, octet * column_octet / w.group);
      std::int32_t code[column_octet];
      codes_of(words, i, panel, lane, octet, code);
      for (int c = 0; c < column_octet; ++c) {
        const float weight =
            round_for(bf16, ::fmaf(t.scale, static_cast<float>(code[c]), t.offset));
        for (int r = 0; r < Rows; ++r) {
          float& sum = part.value[r * team_outputs + i];
          sum = ::fmaf(weight, values[r][c], sum);
        }
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void add_int8(std::int64_t first_row, std::int64_t panel, int half,
                                       std::int64_t octet, sums& part) const {
    eight_shorts values[Rows] = {};
    float scale[Rows] = {}, scaled_plain[Rows] = {};
    for (int r = 0; r < Rows; ++r) {
      const std::int64_t row = first_row + r;
      if (row >= m) continue;
      values[r] =
          *reinterpret_cast<const eight_shorts*>(q.values + row * w.cols + octet * column_octet);
      scale[r] = q.scales[row * q.groups + octet * column_octet / activation_group];
      std::int32_t plain = 0;
      for (int c = 0; c < column_octet; ++c)
        plain += values[r].value[c];
      scaled_plain[r] = scale[r] * static_cast<float>(plain);
    }
    const code_words words = load_codes(panel, half, octet);
    for (int i = 0; i < team_outputs; ++i) {
      const int lane = half * team_outputs + i;
      const scale_offset t = group_params(w, panel, lane, octet * column_octet / w.group);
      std::int32_t code[column_octet];
      codes_of(words, i, panel, lane, octet, code);
      for (int r = 0; r < Rows; ++r) {
        std::int32_t products = 0;
        for (int c = 0; c < column_octet; ++c)
          products += code[c] * values[r].value[c];
        float& sum = part.value[r * team_outputs + i];
        sum = ::fmaf(t.scale * scale[r], static_cast<float>(products), sum);
        sum = ::fmaf(t.offset, scaled_plain[r], sum);
      }
    }
  }

  /// Column `c` of an octet of half a panel.
  KOKKOS_INLINE_FUNCTION void load_dense(std::int64_t panel, int half, std::int64_t column,
                                         float (&to)[team_outputs]) const {
    const unsigned char* from = w.codes + panel * w.codes_stride;
    const std::int64_t at = column * lanes + half * team_outputs;
    std::uint32_t words[team_outputs];
    if (w.kind == weight_kind::f32) {
      load_words(from + at * 4, words);
      for (int i = 0; i < team_outputs; ++i)
        to[i] = bits_to_f32(words[i]);
    } else if (w.kind == weight_kind::f16) {
      const four_words pairs = *reinterpret_cast<const four_words*>(from + at * 2);
      for (int i = 0; i < team_outputs; ++i)
        to[i] = f16_to_f32(static_cast<std::uint16_t>(pairs.word[i / 2] >> (i % 2 * 16)));
    } else { // pairs of columns
      load_words(from + (column / 2 * lanes + half * team_outputs) * 4, words);
      for (int i = 0; i < team_outputs; ++i)
        to[i] = bf16_to_f32(static_cast<std::uint16_t>(words[i] >> (column % 2 * 16)));
    }
  }

  KOKKOS_INLINE_FUNCTION void add_dense(std::int64_t first_row, std::int64_t panel, int half,
                                        std::int64_t octet, sums& part) const {
    float values[Rows][column_octet] = {};
    for (int r = 0; r < Rows; ++r)
      if (first_row + r < m) load_row(first_row + r, octet, values[r]);
    for (int c = 0; c < column_octet; ++c) {
      float weights[team_outputs];
      load_dense(panel, half, octet * column_octet + c, weights);
      for (int i = 0; i < team_outputs; ++i) {
        const float weight = round_for(bf16, weights[i]);
        for (int r = 0; r < Rows; ++r) {
          float& sum = part.value[r * team_outputs + i];
          sum = ::fmaf(weight, values[r][c], sum);
        }
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    // Teams that follow each other share weights.
    const std::int64_t blocks = (m + Rows - 1) / Rows;
    const std::int64_t first_row = team.league_rank() % blocks * Rows;
    const std::int64_t halves = team.league_rank() / blocks;
    const std::int64_t panel = halves / 2;
    const int half = static_cast<int>(halves % 2);
    sums total;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, static_cast<int>(w.padded_cols / column_octet)),
        [&](const int octet, sums& part) {
          if (int8)
            add_int8(first_row, panel, half, octet, part);
          else if (w.grouped())
            add_grouped(first_row, panel, half, octet, part);
          else
            add_dense(first_row, panel, half, octet, part);
        },
        Kokkos::Sum<sums>(total));
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      const std::int64_t first_output = panel * lanes + half * team_outputs;
      for (int r = 0; r < Rows; ++r)
        for (int i = 0; i < team_outputs; ++i) {
          const std::int64_t output = first_output + i;
          if (first_row + r >= m || output >= w.rows) continue;
          float sum = total.value[r * team_outputs + i];
          if (bias != nullptr) sum += bias[output];
          float& to = out[(first_row + r) * out_stride + output];
          to = accumulate ? to + sum : sum;
        }
    });
  }
};

inline std::int64_t activation_groups(const packed_view& w) {
  return (w.cols + activation_group - 1) / activation_group;
}

/// Scratch holds the gathered activations, where columns have an order, then their integers.
struct scratch_layout {
  scratch_layout(const packed_view& w, bool ordered, bool int8, std::int64_t m)
      : gathered(ordered ? (m * w.cols * 4 + 63) / 64 * 64 : 0),
        values(int8 ? (m * w.cols * 2 + 63) / 64 * 64 : 0),
        scales(int8 ? m * activation_groups(w) * 4 : 0) {}
  std::int64_t bytes() const { return gathered + values + scales; }
  std::int64_t gathered, values, scales;
};

template <class Launch>
struct linear_portable {
  static bool supports(const packed_view&, compute_type) { return true; }

  static std::int64_t scratch_bytes(const device&, const packed_view& w, bool ordered,
                                    compute_type asked, std::int64_t m) {
    return scratch_layout(w, ordered, is_int8(effective_compute(w, asked)), m).bytes();
  }

  template <int Rows>
  static void multiply(device& dev, const linear_args& args, const tensor_ref& x,
                       const quantised& q) {
    linear_team<typename Launch::member, Rows> team;
    team.w = args.weights->get().view;
    team.x = x.as<const float>();
    team.m = x.rows();
    team.x_stride = x.row_stride;
    team.vectors = reinterpret_cast<std::uintptr_t>(team.x) % alignof(four_floats) == 0 &&
                   team.x_stride % 4 == 0 && team.w.cols % column_octet == 0;
    const compute_type compute = effective_compute(team.w, args.compute);
    team.int8 = is_int8(compute);
    team.bf16 = compute == compute_type::bf16;
    team.q = q;
    team.bias = args.bias;
    team.out = args.out.as<float>();
    team.out_stride = args.out.row_stride;
    team.accumulate = args.accumulate;
    const std::int64_t blocks = (team.m + Rows - 1) / Rows;
    Launch::teams(dev, "linear", 2 * team.w.panels * blocks, team);
  }

  static void run(device& dev, const linear_args& args) {
    const packed_view w = args.weights->get().view;
    const compute_type compute = effective_compute(w, args.compute);
    const std::int64_t m = args.x.rows();
    const std::int32_t* order = args.weights->get().column_order();
    const bool int8 = is_int8(compute);
    quantised q{};
    q.largest_code = compute == compute_type::int8 ? 127.0F : 127.0F * residual_ratio;
    q.groups = activation_groups(w);
    const scratch_layout layout(w, order != nullptr, int8, m);
    auto* scratch =
        static_cast<unsigned char*>(dev.scratch(static_cast<std::size_t>(layout.bytes())));
    tensor_ref from = args.x;
    if (order != nullptr) {
      gather_columns<Launch>(dev, args.x, order, w.cols, reinterpret_cast<float*>(scratch));
      from = view_2d(scratch, dtype::f32, m, w.cols);
    }
    if (int8) {
      q.values = reinterpret_cast<short*>(scratch + layout.gathered);
      q.scales = reinterpret_cast<float*>(scratch + layout.gathered + layout.values);
      quantise<Launch>(dev, w, from, q);
    }

    if (m > 1)
      multiply<4>(dev, args, from, q);
    else
      multiply<1>(dev, args, from, q);
  }

  static constexpr linear_backend table{supports, scratch_bytes, run, nullptr};
};

} // namespace twill::gpu::detail
