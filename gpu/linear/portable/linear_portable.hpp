// The portable implementation of linear(): Kokkos kernels for any execution space, which read every
// packed layout. A team multiplies 8 rows of the weights (half a row panel) by up to four rows of
// activations.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/detail/activation_element.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/portable/launch.hpp"

namespace twill::gpu::detail {

/// Activations rounded to the integers of int8 or int8x2. With int8x2 one integer holds both the
/// code and the residual, which is the error of the rounding.
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

/// Copies x to `to`, converts its elements and, if the weights have a column order, reorders its
/// columns. // to: (m, cols)
template <class Launch, class From, class To>
void copy_columns(device& dev, const tensor_ref& x, const std::int32_t* order, std::int64_t cols,
                  typename To::stored* to) {
  const auto* from = x.as<const typename From::stored>();
  const std::int64_t stride = x.row_stride;
  Launch::items(
      dev, "linear_copy", x.rows() * cols, KOKKOS_LAMBDA(const long i) {
        const std::int64_t row = i / cols;
        const std::int64_t column = i - row * cols;
        const std::int64_t at = order == nullptr ? column : order[column];
        to[i] = To::narrow(From::widen(from[row * stride + at]));
      });
}

/// Pieces of 16 aligned bytes, which a GPU loads at once.
struct alignas(16) four_words {
  std::uint32_t word[4];
};
template <class Stored>
struct alignas(16) sixteen_bytes {
  static constexpr int count = 16 / int{sizeof(Stored)};
  Stored value[count];
};
struct alignas(16) eight_shorts {
  short value[8];
};

/// The number of outputs that a team computes for each row: half a row panel of 16 outputs. The
/// codes of each half are contiguous.
inline constexpr int team_outputs = 8;

/// The kinds of products. Each kind has a kernel of its own, since one kernel for all kinds would
/// need local arrays, which a GPU keeps in memory.
enum class products : std::uint8_t { dense, grouped, int8 };

/// out = x * W^T for half a row panel (8 outputs) and up to `Rows` rows of x. Octets (8
/// neighbouring columns) are distributed round robin over the threads (lanes) of a team. The order
/// of a sum depends only on the number of columns and of lanes, so a row has the same bits in any
/// batch. `Element` is the type of x, to which weights are rounded.
template <class Member, int Rows, products Products, class Element>
struct linear_team {
  static constexpr int most_lanes = 128;
  static constexpr int lane_stride = most_lanes + 1; ///< floats: spreads lanes over memory banks
  static constexpr int n_sums = Rows * team_outputs;
  static constexpr long scratch_bytes = long{n_sums} * lane_stride * long{sizeof(float)};

  struct sums {
    float value[n_sums] = {}; // (Rows, team_outputs)
  };

  packed_view w;
  const typename Element::stored* x; // (m, cols)
  std::int64_t m, x_stride;
  bool vectors; ///< x may be read in aligned pieces of 16 bytes
  quantised q;  ///< x as integers, with int8
  const float* bias;
  float* out;
  std::int64_t out_stride;
  bool accumulate;

  KOKKOS_INLINE_FUNCTION static float rounded(float weight) {
    return Element::widen(Element::narrow(weight));
  }

  /// Octet `octet` of a row; columns beyond the last are zero.
  KOKKOS_INLINE_FUNCTION void load_row(std::int64_t row, std::int64_t octet,
                                       float (&to)[column_octet]) const {
    using piece = sixteen_bytes<typename Element::stored>;
    const std::int64_t first = octet * column_octet;
    const auto* from = x + row * x_stride + first;
    if (vectors) {
      TWILL_UNROLL
      for (int c = 0; c < column_octet; c += piece::count) {
        const piece some = *reinterpret_cast<const piece*>(from + c);
        TWILL_UNROLL
        for (int i = 0; i < piece::count; ++i)
          to[c + i] = Element::widen(some.value[i]);
      }
    } else {
      TWILL_UNROLL
      for (int c = 0; c < column_octet; ++c)
        to[c] = first + c < w.cols ? Element::widen(from[c]) : 0.0f;
    }
  }

  /// 32 bytes of an array.
  KOKKOS_INLINE_FUNCTION static void load_words(const unsigned char* from,
                                                std::uint32_t (&to)[team_outputs]) {
    const four_words low = *reinterpret_cast<const four_words*>(from);
    const four_words high = *reinterpret_cast<const four_words*>(from + 16);
    TWILL_UNROLL
    for (int i = 0; i < 4; ++i) {
      to[i] = low.word[i];
      to[i + 4] = high.word[i];
    }
  }

  /// The packed codes of one octet of columns for four outputs: columns 0 to 3, and 4 to 7.
  struct code_words {
    four_words first, second;
  };
  KOKKOS_INLINE_FUNCTION code_words load_codes(std::int64_t panel, int first_lane,
                                               std::int64_t octet) const {
    const unsigned char* from = w.codes + panel * w.codes_stride + first_lane * 4;
    code_words words;
    if (w.kind == weight_kind::grouped_u8) {
      words.first = *reinterpret_cast<const four_words*>(from + octet * 2 * code_line_bytes);
      words.second = *reinterpret_cast<const four_words*>(from + (octet * 2 + 1) * code_line_bytes);
    } else {
      words.first = *reinterpret_cast<const four_words*>(from + octet * code_line_bytes);
      TWILL_UNROLL
      for (int i = 0; i < 4; ++i)
        words.second.word[i] = words.first.word[i] >> 4;
    }
    return words;
  }
  /// Extracts the codes of output i of the four, which is lane `lane` of the panel.
  KOKKOS_INLINE_FUNCTION void codes_of(const code_words& words, int i, std::int64_t panel,
                                       std::int64_t lane, std::int64_t octet,
                                       std::int32_t (&code)[column_octet]) const {
    const std::uint32_t mask = w.kind == weight_kind::grouped_u8 ? 255u : 15u;
    TWILL_UNROLL
    for (int c = 0; c < 4; ++c) {
      code[c] = static_cast<std::int32_t>(words.first.word[i] >> (8 * c) & mask);
      code[c + 4] = static_cast<std::int32_t>(words.second.word[i] >> (8 * c) & mask);
    }
    if (w.kind == weight_kind::grouped_u4_as_u8) { // see code_at()
      const std::int64_t column = octet * column_octet;
      const auto* line = reinterpret_cast<const std::uint16_t*>(
          w.scales + panel * w.scales_stride + column / w.group * w.params_stride +
          (1 + column % w.group / w.code_group) * code_line_bytes);
      TWILL_UNROLL
      for (int c = 0; c < column_octet; ++c)
        code[c] = static_cast<std::uint16_t>(line[lane] * code[c] + line[lanes + lane]) >> 8;
    }
  }

  KOKKOS_INLINE_FUNCTION void add_grouped(std::int64_t first_row, std::int64_t panel, int half,
                                          std::int64_t octet, sums& part) const {
    float values[Rows][column_octet] = {};
    TWILL_UNROLL
    for (int r = 0; r < Rows; ++r)
      if (first_row + r < m) load_row(first_row + r, octet, values[r]);
    code_words words;
    TWILL_UNROLL
    for (int i = 0; i < team_outputs; ++i) {
      const int lane = half * team_outputs + i;
      if (i % 4 == 0) words = load_codes(panel, lane, octet);
      const scale_offset t = group_params(w, panel, lane, octet * column_octet / w.group);
      std::int32_t code[column_octet];
      codes_of(words, i % 4, panel, lane, octet, code);
      TWILL_UNROLL
      for (int c = 0; c < column_octet; ++c) {
        const float weight = rounded(::fmaf(t.scale, static_cast<float>(code[c]), t.offset));
        TWILL_UNROLL
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
    TWILL_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const std::int64_t row = first_row + r;
      if (row >= m) continue;
      values[r] =
          *reinterpret_cast<const eight_shorts*>(q.values + row * w.cols + octet * column_octet);
      scale[r] = q.scales[row * q.groups + octet * column_octet / activation_group];
      std::int32_t plain = 0;
      TWILL_UNROLL
      for (int c = 0; c < column_octet; ++c)
        plain += values[r].value[c];
      scaled_plain[r] = scale[r] * static_cast<float>(plain);
    }
    code_words words;
    TWILL_UNROLL
    for (int i = 0; i < team_outputs; ++i) {
      const int lane = half * team_outputs + i;
      if (i % 4 == 0) words = load_codes(panel, lane, octet);
      const scale_offset t = group_params(w, panel, lane, octet * column_octet / w.group);
      std::int32_t code[column_octet];
      codes_of(words, i % 4, panel, lane, octet, code);
      TWILL_UNROLL
      for (int r = 0; r < Rows; ++r) {
        std::int32_t product = 0;
        TWILL_UNROLL
        for (int c = 0; c < column_octet; ++c)
          product += code[c] * values[r].value[c];
        float& sum = part.value[r * team_outputs + i];
        sum = ::fmaf(t.scale * scale[r], static_cast<float>(product), sum);
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
      TWILL_UNROLL
      for (int i = 0; i < team_outputs; ++i)
        to[i] = bits_to_f32(words[i]);
    } else if (w.kind == weight_kind::f16) {
      const four_words pairs = *reinterpret_cast<const four_words*>(from + at * 2);
      TWILL_UNROLL
      for (int i = 0; i < team_outputs; ++i)
        to[i] = f16_to_f32(static_cast<std::uint16_t>(pairs.word[i / 2] >> (i % 2 * 16)));
    } else { // pairs of columns
      load_words(from + (column / 2 * lanes + half * team_outputs) * 4, words);
      TWILL_UNROLL
      for (int i = 0; i < team_outputs; ++i)
        to[i] = bf16_to_f32(static_cast<std::uint16_t>(words[i] >> (column % 2 * 16)));
    }
  }

  KOKKOS_INLINE_FUNCTION void add_dense(std::int64_t first_row, std::int64_t panel, int half,
                                        std::int64_t octet, sums& part) const {
    constexpr auto exact = Element::type == dtype::f16 ? weight_kind::f16 : weight_kind::bf16;
    const bool rounds = Element::rounds && w.kind != exact;
    float values[Rows][column_octet] = {};
    TWILL_UNROLL
    for (int r = 0; r < Rows; ++r)
      if (first_row + r < m) load_row(first_row + r, octet, values[r]);
    TWILL_UNROLL
    for (int c = 0; c < column_octet; ++c) {
      float weights[team_outputs];
      load_dense(panel, half, octet * column_octet + c, weights);
      TWILL_UNROLL
      for (int i = 0; i < team_outputs; ++i) {
        const float weight = rounds ? rounded(weights[i]) : weights[i];
        TWILL_UNROLL
        for (int r = 0; r < Rows; ++r) {
          float& sum = part.value[r * team_outputs + i];
          sum = ::fmaf(weight, values[r][c], sum);
        }
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const Member& team) const {
    // Teams with consecutive numbers share weights.
    const std::int64_t blocks = (m + Rows - 1) / Rows;
    const std::int64_t first_row = team.league_rank() % blocks * Rows;
    const std::int64_t halves = team.league_rank() / blocks;
    const std::int64_t panel = halves / 2;
    const int half = static_cast<int>(halves % 2);
    sums part;
    const int octets = static_cast<int>(w.padded_cols / column_octet);
    for (int octet = team.team_rank(); octet < octets; octet += team.team_size()) {
      if constexpr (Products == products::int8)
        add_int8(first_row, panel, half, octet, part);
      else if constexpr (Products == products::grouped)
        add_grouped(first_row, panel, half, octet, part);
      else
        add_dense(first_row, panel, half, octet, part);
    }
    auto* of_lanes = static_cast<float*>(
        team.team_shmem().get_shmem(static_cast<int>(scratch_bytes))); // (n_sums, lane_stride)
    TWILL_UNROLL
    for (int i = 0; i < n_sums; ++i)
      of_lanes[i * lane_stride + team.team_rank()] = part.value[i];
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n_sums), [&](const int i) {
      const std::int64_t row = first_row + i / team_outputs;
      const std::int64_t output = panel * lanes + half * team_outputs + i % team_outputs;
      if (row >= m || output >= w.rows) return;
      float sum = 0;
      for (int lane = 0; lane < team.team_size(); ++lane)
        sum += of_lanes[i * lane_stride + lane];
      if (bias != nullptr) sum += bias[output];
      float& to = out[row * out_stride + output];
      to = accumulate ? to + sum : sum;
    });
  }
};

inline std::int64_t activation_groups(const packed_view& w) {
  return (w.cols + activation_group - 1) / activation_group;
}

/// The layout of scratch memory: first a copy of the activations in the column order and element
/// type that the kernel reads (absent where x itself can be read), then the quantised activations.
struct scratch_layout {
  scratch_layout(const packed_view& w, bool ordered, compute_type compute, std::int64_t m)
      : copied((m * w.cols * copied_bytes(ordered, compute) + 63) / 64 * 64),
        values(is_int8(compute) ? (m * w.cols * 2 + 63) / 64 * 64 : 0),
        scales(is_int8(compute) ? m * activation_groups(w) * 4 : 0) {}
  std::int64_t bytes() const { return copied + values + scales; }
  static std::int64_t copied_bytes(bool ordered, compute_type compute) {
    if (element_of(compute) != dtype::f32) return 2;
    return ordered ? 4 : 0;
  }
  std::int64_t copied, values, scales;
};

template <class Launch>
struct linear_portable {
  static bool supports(const packed_view&, compute_type) { return true; }

  static std::int64_t scratch_bytes(const device&, const packed_view& w, bool ordered,
                                    compute_type asked, std::int64_t m) {
    return scratch_layout(w, ordered, effective_compute(w, asked), m).bytes();
  }

  template <int Rows, products Products, class Element>
  static void multiply(device& dev, const linear_args& args, const tensor_ref& x,
                       const quantised& q) {
    using team_type = linear_team<typename Launch::member, Rows, Products, Element>;
    using stored = typename Element::stored;
    constexpr auto count = sixteen_bytes<stored>::count;
    team_type team;
    team.w = args.weights->get().view;
    team.x = x.as<const stored>();
    team.m = x.rows();
    team.x_stride = x.row_stride;
    team.vectors = reinterpret_cast<std::uintptr_t>(team.x) % 16 == 0 &&
                   team.x_stride % count == 0 && team.w.cols % column_octet == 0;
    team.q = q;
    team.bias = args.bias;
    team.out = args.out.as<float>();
    team.out_stride = args.out.row_stride;
    team.accumulate = args.accumulate;
    const std::int64_t blocks = (team.m + Rows - 1) / Rows;
    Launch::template teams<Kokkos::LaunchBounds<team_type::most_lanes, 3>>(
        dev, "linear", 2 * team.w.panels * blocks, team,
        {.scratch_bytes = team_type::scratch_bytes, .chip_lanes = team_type::most_lanes});
  }

  template <products Products, class Element>
  static void multiply_rows(device& dev, const linear_args& args, const tensor_ref& x,
                            const quantised& q) {
    if (x.rows() > 1)
      multiply<4, Products, Element>(dev, args, x, q);
    else
      multiply<1, Products, Element>(dev, args, x, q);
  }

  /// Runs the products of floats. x already has the element type in which they are computed.
  template <class Element>
  static void multiply_floats(device& dev, const linear_args& args, void* scratch) {
    const packed_view& w = args.weights->get().view;
    const std::int32_t* order = args.weights->get().column_order();
    tensor_ref x = args.x;
    if (order != nullptr || x.type != Element::type) {
      auto* to = static_cast<typename Element::stored*>(scratch);
      if (x.type == Element::type)
        copy_columns<Launch, Element, Element>(dev, x, order, w.cols, to);
      else
        copy_columns<Launch, f32_element, Element>(dev, x, order, w.cols, to);
      x = view_2d(to, Element::type, x.rows(), w.cols);
    }
    if (w.grouped())
      multiply_rows<products::grouped, Element>(dev, args, x, {});
    else
      multiply_rows<products::dense, Element>(dev, args, x, {});
  }

  static void multiply_integers(device& dev, const linear_args& args, compute_type compute,
                                const scratch_layout& layout, unsigned char* scratch) {
    const packed_view& w = args.weights->get().view;
    const std::int32_t* order = args.weights->get().column_order();
    tensor_ref x = args.x;
    if (order != nullptr) {
      auto* to = reinterpret_cast<float*>(scratch);
      copy_columns<Launch, f32_element, f32_element>(dev, x, order, w.cols, to);
      x = view_2d(to, dtype::f32, x.rows(), w.cols);
    }
    quantised q{};
    q.largest_code = compute == compute_type::int8 ? 127.0F : 127.0F * residual_ratio;
    q.groups = activation_groups(w);
    q.values = reinterpret_cast<short*>(scratch + layout.copied);
    q.scales = reinterpret_cast<float*>(scratch + layout.copied + layout.values);
    quantise<Launch>(dev, w, x, q);
    multiply_rows<products::int8, f32_element>(dev, args, x, q);
  }

  static void run(device& dev, const linear_args& args) {
    const packed_view& w = args.weights->get().view;
    const compute_type compute = effective_compute(w, args.compute);
    const scratch_layout layout(w, args.weights->get().column_order() != nullptr, compute,
                                args.x.rows());
    auto* scratch =
        static_cast<unsigned char*>(dev.scratch(static_cast<std::size_t>(layout.bytes())));
    if (is_int8(compute))
      multiply_integers(dev, args, compute, layout, scratch);
    else
      with_activation_element(element_of(compute), [&](auto element) {
        multiply_floats<decltype(element)>(dev, args, scratch);
      });
  }

  static constexpr linear_backend table{supports, scratch_bytes, run, nullptr, true};
};

} // namespace twill::gpu::detail
