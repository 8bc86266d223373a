// linear()'s portable form: one Kokkos kernel for any execution space, from the packed layout of
// all forms. One output element per work item.
#pragma once

#include "gpu/detail/linear_backend.hpp"
#include "gpu/portable/launch.hpp"

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

TWILL_KERNEL_FUNCTION float dot_int8(const packed_view& w, const quantised& q, std::int64_t row,
                                     std::int64_t panel, std::int64_t lane) {
  const short* values = q.values + row * w.cols;
  float sum = 0;
  for (std::int64_t k = 0; k < w.cols;) {
    const std::int64_t end = k + w.segment;
    const scale_offset t = group_params(w, panel, lane, k / w.group);
    const float scale = q.scales[row * q.groups + k / activation_group];
    std::int32_t products = 0;
    std::int32_t plain = 0;
    for (; k < end; ++k) {
      products += code_at(w, panel, lane, k) * values[k];
      plain += values[k];
    }
    sum += t.scale * scale * static_cast<float>(products);
    sum += t.offset * (scale * static_cast<float>(plain));
  }
  return sum;
}

TWILL_KERNEL_FUNCTION float round_for(bool bf16, float x) {
  return bf16 ? bf16_to_f32(f32_to_bf16(x)) : x;
}

TWILL_KERNEL_FUNCTION float dot_float(const packed_view& w, const float* x, bool bf16,
                                      std::int64_t panel, std::int64_t lane) {
  float sum = 0;
  if (!w.grouped()) {
    for (std::int64_t k = 0; k < w.cols; ++k)
      sum += round_for(bf16, dense_at(w, panel, lane, k)) * round_for(bf16, x[k]);
    return sum;
  }
  for (std::int64_t k = 0; k < w.cols;) {
    const scale_offset t = group_params(w, panel, lane, k / w.group);
    for (const std::int64_t end = k + w.group; k < end; ++k) {
      const float value = t.scale * static_cast<float>(code_at(w, panel, lane, k)) + t.offset;
      sum += round_for(bf16, value) * round_for(bf16, x[k]);
    }
  }
  return sum;
}

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

    const float* x = from.as<const float>();
    const std::int64_t x_stride = from.row_stride;
    float* out = args.out.as<float>();
    const std::int64_t out_stride = args.out.row_stride;
    const float* bias = args.bias;
    const bool accumulate = args.accumulate;
    Launch::items(
        dev, "linear", m * w.rows, KOKKOS_LAMBDA(const long i) {
          const std::int64_t row = i / w.rows;
          const std::int64_t n = i % w.rows;
          float sum = int8 ? dot_int8(w, q, row, n / lanes, n % lanes)
                           : dot_float(w, x + row * x_stride, compute == compute_type::bf16,
                                       n / lanes, n % lanes);
          if (bias != nullptr) sum += bias[n];
          float& to = out[row * out_stride + n];
          to = accumulate ? to + sum : sum;
        });
  }

  static constexpr linear_backend table{supports, scratch_bytes, run, nullptr};
};

} // namespace twill::gpu::detail
