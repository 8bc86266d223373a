#include "tools/twill-bench/kernels/weights.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "gpu/detail/half.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"

namespace twill::bench {

namespace {

/// Rows begin at this many different places of one run of random elements.
constexpr std::int64_t shifts = 61;

/// The next number of a linear congruential generator.
std::uint32_t next_random(std::uint32_t& state) {
  state = state * 1664525U + 1013904223U;
  return state >> 8;
}

template <class T, class F>
std::shared_ptr<const std::vector<T>> random_run(std::int64_t n, const F& element) {
  std::uint32_t state = 7;
  const auto run = std::make_shared<std::vector<T>>(static_cast<std::size_t>(n + shifts));
  for (T& value : *run)
    value = element(next_random(state));
  return run;
}

float through_f16(float x) {
  return gpu::detail::f16_to_f32(gpu::detail::f32_to_f16(x));
}

} // namespace

gpu::weight_source make_source(const weight_form& form, std::int64_t rows, std::int64_t cols) {
  gpu::weight_source source;
  source.kind = form.kind;
  source.rows = rows;
  source.cols = cols;
  source.group = form.group;
  source.code_group = form.code_group;
  if (form.form == param_values::integers) source.only_compute = gpu::compute_type::int8;
  if (!gpu::is_grouped(form.kind)) {
    // Values of either sign with magnitudes from 2^-7 to 2^-5, as f16 or as bf16.
    const bool bf16 = form.kind == gpu::weight_kind::bf16;
    const auto run = random_run<std::uint16_t>(cols, [bf16](std::uint32_t r) {
      const float magnitude = 0x1p-7F + static_cast<float>(r % 4096) * (0x3p-7F / 4096);
      const float value = (r & 0x8000U) != 0 ? -magnitude : magnitude;
      return bf16 ? gpu::detail::f32_to_bf16(value) : gpu::detail::f32_to_f16(value);
    });
    source.dense_row = [run](std::int64_t row) -> const void* {
      return run->data() + row % shifts;
    };
    return source;
  }
  const std::uint32_t top = form.kind == gpu::weight_kind::grouped_u8 ? 255 : 15;
  const auto run = random_run<std::uint8_t>(
      cols, [top](std::uint32_t r) { return static_cast<std::uint8_t>(r & top); });
  source.grouped = [form, run, cols](std::int64_t row, const gpu::grouped_row& out) {
    std::memcpy(out.codes, run->data() + row % shifts, static_cast<std::size_t>(cols));
    if (form.code_group > 0) {
      std::fill_n(out.factors, cols / form.code_group,
                  static_cast<std::uint16_t>(row * 256 % 4096));
      std::fill_n(out.bases, cols / form.code_group, std::uint16_t{1024});
    }
    for (std::int64_t g = 0; g < cols / form.group; ++g) {
      const auto wave = static_cast<float>((row * 31 + g * 17) % 1000);
      out.scales[g] = through_f16(0.001F + wave * 1.1e-6F);
      if (form.form == param_values::floats || form.form == param_values::float_scales)
        out.scales[g] *= 0.987F;
      switch (form.form) {
      case param_values::factored:
      case param_values::float_scales:
        out.offsets[g] = -8 * out.scales[g];
        break;
      case param_values::zeros:
        out.offsets[g] = -static_cast<float>((row + g) % 16) * out.scales[g];
        break;
      case param_values::halves:
      case param_values::integers:
        out.offsets[g] = through_f16(-0.01F - wave * 1e-6F);
        break;
      case param_values::floats:
        out.offsets[g] = -0.01F - wave * 1e-6F;
        break;
      }
    }
  };
  return source;
}

rotating_weights::rotating_weights(gpu::device& dev, const gpu::weight_source& source,
                                   std::int64_t least_bytes) {
  const gpu::packed_matrix packed = value_of(gpu::pack_on_host(dev, source, "weights"));
  const gpu::image_layout layout = packed.layout();
  bytes_ = packed.row_panels() * (layout.code_panel_bytes + layout.scale_panel_bytes) +
           layout.order_bytes;
  const auto image_bytes = static_cast<std::size_t>(layout.bytes(packed.row_panels()));
  const auto image = std::make_unique_for_overwrite<unsigned char[]>(image_bytes);
  packed.save_image(0, packed.row_panels(), image.get());
  for (std::int64_t held = 0; held == 0 || held < least_bytes; held += bytes_) {
    images_.push_back(
        value_of(dev.allocate(image_bytes, "weights", gpu::page_hint::filled_at_once)));
    dev.upload(images_.back().data(), image.get(), image_bytes);
    matrices_.push_back(packed.like(packed.rows()));
    matrices_.back().place(images_.back().data());
  }
}

} // namespace twill::bench
