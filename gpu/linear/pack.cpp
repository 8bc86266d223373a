#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/host/thread_pool.hpp"
#include "gpu/linear/detail/packed_form.hpp"
#include "gpu/linear/detail/quant_params.hpp"

namespace twill::gpu {

namespace {

using detail::lanes;
using detail::packed_view;
using detail::quant_param_facts;
using detail::quant_params;

/// Calls f(first, end) for runs of row panels, on the host's threads.
template <class F>
void for_panel_runs(device& dev, std::int64_t panels, const F& f) {
  constexpr std::int64_t chunk = grouped_rows::most_rows / lanes;
  dev.pool().run((panels + chunk - 1) / chunk,
                 [&](std::int64_t part) { f(part * chunk, std::min(panels, (part + 1) * chunk)); });
}

/// Calls f(panel) for every row panel, on the host's threads.
template <class F>
void for_panels(device& dev, std::int64_t panels, const F& f) {
  for_panel_runs(dev, panels, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t panel = first; panel < end; ++panel)
      f(panel);
  });
}

/// The bits that only infinities and NaN have all set.
std::uint32_t exponent_bits(weight_kind dense) {
  if (dense == weight_kind::f32) return 0x7f800000U;
  return dense == weight_kind::f16 ? 0x7c00U : 0x7f80U;
}

/// Packs one row panel (16 rows) of a dense matrix; T is the unsigned integer of an element's
/// width. Returns whether every value is finite.
template <class T>
bool pack_dense(const weight_source& source, const packed_view& w, std::int64_t panel,
                unsigned char* to) {
  const auto exponent = static_cast<T>(exponent_bits(source.kind));
  const bool rounds = source.kind != w.kind;
  bool finite = true;
  auto* out = reinterpret_cast<T*>(to);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t row = panel * lanes + lane;
    if (row >= w.rows) break;
    const auto* from = static_cast<const unsigned char*>(source.dense_row(row));
    for (std::int64_t k = 0; k < w.cols; ++k) {
      T value;
      std::memcpy(&value, from + k * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      const std::int64_t at =
          w.kind == weight_kind::bf16 ? (k / 2 * lanes + lane) * 2 + k % 2 : k * lanes + lane;
      finite &= (value & exponent) != exponent;
      if constexpr (sizeof(T) == sizeof(std::uint16_t))
        if (rounds) value = detail::f32_to_bf16(detail::f16_to_f32(value));
      out[at] = value;
    }
  }
  return finite;
}

std::uint32_t four_codes(const std::uint8_t* codes) {
  std::uint32_t four;
  std::memcpy(&four, codes, sizeof four);
  return four;
}

/// Writes one row's codes into its lane of the panel.
void pack_codes(const packed_view& w, const std::uint8_t* codes, std::int64_t lane,
                unsigned char* to) {
  to += lane * 4;
  if (w.kind == weight_kind::grouped_u8) {
    for (std::int64_t k = 0; k < w.cols; k += 4, to += 64)
      std::memcpy(to, codes + k, 4);
    return;
  }
  for (std::int64_t k = 0; k < w.cols; k += 8, to += 64) {
    const std::uint32_t both =
        (four_codes(codes + k) & 0x0f0f0f0fU) | (four_codes(codes + k + 4) & 0x0f0f0f0fU) << 4;
    std::memcpy(to, &both, sizeof both);
  }
}

bool finite_params(const quant_params& t, std::int64_t first_row, std::int64_t end_row) {
  bool finite = true;
  for (std::int64_t i = first_row * t.groups; i < end_row * t.groups; ++i)
    finite &= std::isfinite(t.scales[i]) && std::isfinite(t.offsets[i]);
  return finite;
}

void pack_grouped(const weight_source& source, const packed_view& w, std::int64_t panel,
                  unsigned char* to, const quant_params& t) {
  const auto codes =
      std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(w.cols));
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t row = panel * lanes + lane;
    float* scales = t.scales.get() + row * t.groups;
    float* offsets = t.offsets.get() + row * t.groups;
    std::uint16_t* factors = t.factors ? t.factors.get() + row * t.code_groups : nullptr;
    std::uint16_t* bases = t.factors ? t.bases.get() + row * t.code_groups : nullptr;
    if (row >= w.rows) {
      std::memset(scales, 0, static_cast<std::size_t>(t.groups) * sizeof(float));
      std::memset(offsets, 0, static_cast<std::size_t>(t.groups) * sizeof(float));
      std::fill_n(factors, t.code_groups, std::uint16_t{0});
      std::fill_n(bases, t.code_groups, std::uint16_t{0});
      continue;
    }
    source.grouped(row, {codes.get(), scales, offsets, factors, bases});
    pack_codes(w, codes.get(), lane, to);
  }
}

/// Reorders a word of 8 codes, the first code in the lowest bits, to the packed order, in which
/// byte i holds the codes of columns i and i + 4.
std::uint32_t packed_order(std::uint32_t word) {
  const std::uint32_t half = (word & 0xff0000ffU) | ((word & 0x00ff0000U) >> 8) |
                             ((word & 0x0000ff00U) << 8); // columns 01 45 23 67
  const std::uint32_t low = half & 0x000f000fU, high = half & 0xf000f000U;
  return low | high | ((half & 0x00f000f0U) << 4) | ((half & 0x0f000f00U) >> 4);
}

/// Packs a run of row panels from a source that fills many rows at once.
void pack_grouped_rows(const weight_source& source, const packed_view& w, std::int64_t first_panel,
                       std::int64_t end_panel, unsigned char* to, const quant_params& t) {
  const std::int64_t first_row = first_panel * lanes;
  const std::int64_t end_row = std::min(w.rows, end_panel * lanes);
  auto* words = reinterpret_cast<std::uint32_t*>(to);
  source.grouped_panels({first_row, end_row - first_row, words,
                         t.scales.get() + first_row * t.groups,
                         t.offsets.get() + first_row * t.groups});
  const auto padding = static_cast<std::size_t>((end_panel * lanes - end_row) * t.groups);
  std::fill_n(t.scales.get() + end_row * t.groups, padding, 0.0F);
  std::fill_n(t.offsets.get() + end_row * t.groups, padding, 0.0F);
  if (w.kind != weight_kind::grouped_u4) return;
  const std::int64_t n = (end_panel - first_panel) * w.codes_stride / 4;
  for (std::int64_t i = 0; i < n; ++i)
    words[i] = packed_order(words[i]);
}

/// Packs a run of row panels; false where a value is not finite.
bool pack_run(const weight_source& source, const packed_view& w, std::int64_t first,
              std::int64_t end, unsigned char* to, const quant_params& t) {
  bool finite = true;
  if (w.grouped() && w.code_group == 0 && source.grouped_panels)
    pack_grouped_rows(source, w, first, end, to, t);
  else
    for (std::int64_t panel = first; panel < end; ++panel, to += w.codes_stride) {
      if (w.grouped())
        pack_grouped(source, w, panel, to, t);
      else if (w.kind == weight_kind::f32)
        finite &= pack_dense<std::uint32_t>(source, w, panel, to);
      else
        finite &= pack_dense<std::uint16_t>(source, w, panel, to);
    }
  return finite && (!w.grouped() || finite_params(t, first * lanes, end * lanes));
}

/// Chooses the smallest form that keeps every scale and offset exactly, or int16 quant params.
void choose_form(device& dev, packed_view& w, const quant_params& t) {
  w.offset_factor = detail::first_factor(t, w.rows * t.groups);
  std::vector<quant_param_facts> of_panels(static_cast<std::size_t>(w.panels),
                                           quant_param_facts(w.kind));
  for_panels(dev, w.panels, [&](std::int64_t panel) {
    const std::int64_t end = (panel + 1) * lanes * t.groups;
    quant_param_facts facts(w.kind);
    for (std::int64_t i = panel * lanes * t.groups; i < end; ++i)
      facts.look_at(t.scales[i], t.offsets[i], w.offset_factor);
    of_panels[static_cast<std::size_t>(panel)] = facts;
  });
  quant_param_facts all(w.kind);
  for (const quant_param_facts& f : of_panels) {
    all.scales_f16 = all.scales_f16 && f.scales_f16;
    all.offsets_f16 = all.offsets_f16 && f.offsets_f16;
    all.factored = all.factored && f.factored;
    all.zero_points = all.zero_points && f.zero_points;
  }
  detail::set_form(w, all, t.groups);
}

/// The memory that packing writes into: device memory itself on a host device; a host copy that is
/// uploaded to a GPU; or host memory for pack_on_host().
class staging {
public:
  static result<staging> make(device& dev, packed_matrix::impl::part& target, std::int64_t bytes,
                              bool on_device, const char* label) {
    staging memory(target);
    target.bytes = bytes;
    const auto n = static_cast<std::size_t>(bytes);
    if (on_device) {
      auto allocated = dev.allocate(n, label, page_hint::filled_at_once);
      if (!allocated.ok()) return allocated.error();
      target.device = std::move(allocated.value());
    }
    if (!on_device || !dev.memory_is_host()) target.host = std::make_unique<unsigned char[]>(n);
    return memory;
  }
  unsigned char* data() const {
    return target_->host ? target_->host.get()
                         : static_cast<unsigned char*>(target_->device.data());
  }
  /// Uploads what has been written, if necessary, and returns the address of the data on the
  /// device; null for pack_on_host().
  const unsigned char* finish(device& dev) const {
    if (target_->device.data() == nullptr) return nullptr;
    if (target_->host) dev.upload(target_->device.data(), data(), target_->device.bytes());
    target_->host.reset();
    return static_cast<const unsigned char*>(target_->device.data());
  }

private:
  explicit staging(packed_matrix::impl::part& target) : target_(&target) {}
  packed_matrix::impl::part* target_;
};

using parts = std::unique_ptr<packed_matrix::impl>;

result<nothing> pack_codes_and_params(device& dev, const weight_source& source, bool on_device,
                                      const char* label, packed_matrix::impl& to, quant_params& t) {
  packed_view& w = to.view;
  auto codes = staging::make(dev, to.codes, w.panels * w.codes_stride, on_device, label);
  if (!codes.ok()) return codes.error();
  if (w.grouped()) {
    t.groups = w.cols / w.group;
    const auto n = static_cast<std::size_t>(w.panels * lanes * t.groups);
    t.scales = std::make_unique_for_overwrite<float[]>(n);
    t.offsets = std::make_unique_for_overwrite<float[]>(n);
  }
  if (w.code_group > 0) {
    t.code_groups = w.cols / w.code_group;
    const auto n = static_cast<std::size_t>(w.panels * lanes * t.code_groups);
    t.factors = std::make_unique_for_overwrite<std::uint16_t[]>(n);
    t.bases = std::make_unique_for_overwrite<std::uint16_t[]>(n);
  }
  std::atomic<bool> finite{true};
  for_panel_runs(dev, w.panels, [&](std::int64_t first, std::int64_t end) {
    if (!pack_run(source, w, first, end, codes.value().data() + first * w.codes_stride, t))
      finite.store(false, std::memory_order_relaxed);
  });
  if (!finite)
    return failure{errc::bad_source, std::string(label) + ": every value must be finite"};
  w.codes = codes.value().finish(dev);
  return nothing{};
}

result<nothing> pack_scales(device& dev, bool on_device, const char* label, packed_matrix::impl& to,
                            const quant_params& t) {
  packed_view& w = to.view;
  w.code_group > 0 ? detail::set_lines_form(w) : choose_form(dev, w, t);
  auto scales = staging::make(dev, to.scales, w.panels * w.scales_stride, on_device, label);
  if (!scales.ok()) return scales.error();
  for_panels(dev, w.panels, [&](std::int64_t panel) {
    unsigned char* at = scales.value().data() + panel * w.scales_stride;
    if (w.code_group > 0)
      detail::store_lines(w, t, panel, at);
    else if (w.int16_quant_params)
      detail::store_int16_params(w, t, panel, at);
    else if (w.scales_f16)
      detail::store_params<std::uint16_t>(w, t, panel, at, detail::f32_to_f16);
    else
      detail::store_params<float>(w, t, panel, at, [](float x) { return x; });
  });
  w.scales = scales.value().finish(dev);
  return nothing{};
}

result<parts> pack_parts(device& dev, const weight_source& source, bool on_device,
                         const char* label) {
  auto described = detail::describe(source, label);
  if (!described.ok()) return described.error();
  auto impl = std::make_unique<packed_matrix::impl>();
  impl->view = described.value();
  quant_params t{};
  if (auto done = pack_codes_and_params(dev, source, on_device, label, *impl, t); !done.ok())
    return done.error();
  if (impl->view.grouped())
    if (auto done = pack_scales(dev, on_device, label, *impl, t); !done.ok()) return done.error();
  if (source.column_order) {
    const auto bytes =
        static_cast<std::int64_t>(source.column_order->size() * sizeof(std::int32_t));
    auto order = staging::make(dev, impl->order, bytes, on_device, label);
    if (!order.ok()) return order.error();
    std::memcpy(order.value().data(), source.column_order->data(), static_cast<std::size_t>(bytes));
    impl->order_at = reinterpret_cast<const std::int32_t*>(order.value().finish(dev));
  }
  return result<parts>(std::move(impl));
}

} // namespace

result<packed_matrix> pack(device& dev, const weight_source& source, const char* label) {
  auto packed = pack_parts(dev, source, true, label);
  if (!packed.ok()) return packed.error();
  packed_matrix matrix;
  matrix.impl_ = std::move(packed.value());
  return result<packed_matrix>(std::move(matrix));
}

result<packed_matrix> pack_on_host(device& dev, const weight_source& source, const char* label) {
  auto packed = pack_parts(dev, source, false, label);
  if (!packed.ok()) return packed.error();
  packed_matrix matrix;
  matrix.impl_ = std::move(packed.value());
  return result<packed_matrix>(std::move(matrix));
}

} // namespace twill::gpu
