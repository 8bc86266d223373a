#include "gpu/linear/detail/packed_form.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "gpu/detail/linear_backend.hpp"

namespace twill::gpu {
namespace detail {

// A matrix that is multiplied only in bf16 is rounded once here instead of at every use. A matrix
// that is multiplied only in int8 may get its scales and offsets stored as 16-bit integers (int16
// quant params), with which one instruction applies scale and offset; these speed up only the
// host's kernels, and the portable implementation also supports such matrices.
result<packed_view> describe(const weight_source& source, const char* label) {
  packed_view w;
  const bool rounds = source.only_compute == compute_type::bf16 && source.kind == weight_kind::f16;
  w.kind = rounds ? weight_kind::bf16 : source.kind;
  w.rows = source.rows;
  w.cols = source.cols;
  const auto refuse = [&](const std::string& why) {
    return failure{errc::bad_source, std::string(label) + ": " + why};
  };
  if (w.rows <= 0 || w.cols <= 0)
    return refuse("rows and cols must be positive, got " + std::to_string(w.rows) + " x " +
                  std::to_string(w.cols));
  if (w.grouped()) {
    if (source.group <= 0 || source.group % 8 != 0 || w.cols % source.group != 0)
      return refuse("group must be a multiple of 8 that divides cols = " + std::to_string(w.cols) +
                    ", got " + std::to_string(source.group));
    if (!source.grouped) return refuse("a grouped kind needs the source's grouped function");
    if (w.kind == weight_kind::grouped_u4_as_u8) {
      if (source.group < 64 || source.group > 512)
        return refuse("group of grouped_u4_as_u8 must be 64 to 512, got " +
                      std::to_string(source.group));
      if (source.code_group <= 0 || source.code_group % 32 != 0 ||
          source.group % source.code_group != 0)
        return refuse("code_group must be a multiple of 32 that divides group = " +
                      std::to_string(source.group) + ", got " + std::to_string(source.code_group));
      w.code_group = source.code_group;
    }
    w.group = source.group;
    w.int16_quant_params = source.only_compute &&
                           effective_compute(w, *source.only_compute) == compute_type::int8 &&
                           w.kind == weight_kind::grouped_u4 && w.group == activation_group;
    w.segment = w.group % 32 == 0 ? 32 : w.group % 16 == 0 ? 16 : 8;
  } else if (!source.dense_row) {
    return refuse("a dense kind needs the source's dense_row function");
  }
  if (source.column_order) {
    if (static_cast<std::int64_t>(source.column_order->size()) != w.cols)
      return refuse("column order must have cols = " + std::to_string(w.cols) + " entries, got " +
                    std::to_string(source.column_order->size()));
    for (const std::int32_t column : *source.column_order)
      if (column < 0 || column >= w.cols)
        return refuse("column order must be within [0, " + std::to_string(w.cols) + "), got " +
                      std::to_string(column));
  }
  w.panels = (w.rows + lanes - 1) / lanes;
  w.padded_cols = (w.cols + column_octet - 1) / column_octet * column_octet;
  const std::int64_t elements = w.padded_cols * lanes;
  switch (w.kind) {
  case weight_kind::f32:
    w.codes_stride = elements * 4;
    break;
  case weight_kind::f16:
  case weight_kind::bf16:
    w.codes_stride = elements * 2;
    break;
  case weight_kind::grouped_u4:
  case weight_kind::grouped_u4_as_u8:
    w.codes_stride = elements / 2;
    break;
  case weight_kind::grouped_u8:
    w.codes_stride = elements;
    break;
  }
  return w;
}

void set_form(packed_view& w, const quant_param_facts& facts, std::int64_t groups) {
  w.offsets_stored = !facts.factored;
  w.zero_points = w.offsets_stored && facts.zero_points;
  const bool float_offsets = w.offsets_stored && !w.zero_points;
  w.int16_quant_params = w.int16_quant_params && float_offsets;
  if (w.int16_quant_params) {
    w.offsets_stored = false;
    w.params_stride = int16_pair_bytes;
    w.scales_stride = row_scale_bytes + groups * w.params_stride;
    return;
  }
  w.scales_f16 = facts.scales_f16 && (facts.offsets_f16 || !float_offsets);
  w.params_stride =
      lanes * (w.scales_f16 ? 2 : 4) * (float_offsets ? 2 : 1) + (w.zero_points ? lanes : 0);
  w.scales_stride = (groups * w.params_stride + 63) / 64 * 64;
}

void set_lines_form(packed_view& w) {
  w.offset_factor = -128;
  w.params_stride = (1 + w.group / w.code_group) * detail::code_line_bytes;
  w.scales_stride = w.cols / w.group * w.params_stride;
}

} // namespace detail

namespace {

/// Finds out from a few of the source's rows which formats can hold its scales and offsets exactly.
/// It reads single rows with their codes or, where the source has `grouped_panels`, runs of
/// neighbouring rows without their codes.
detail::quant_param_facts facts_of_some_rows(const weight_source& source) {
  const bool in_runs = source.grouped_panels != nullptr;
  const std::int64_t run = in_runs ? std::min(grouped_rows::most_rows, source.rows) : 1;
  const std::int64_t last = (source.rows - run) / detail::lanes * detail::lanes;
  const std::int64_t firsts[] = {0, last / 2 / detail::lanes * detail::lanes,
                                 in_runs ? last : source.rows - 1};
  detail::quant_params t{};
  t.groups = source.cols / source.group;
  const std::int64_t n = static_cast<std::int64_t>(std::size(firsts)) * run * t.groups;
  t.scales = std::make_unique<float[]>(static_cast<std::size_t>(n));
  t.offsets = std::make_unique<float[]>(static_cast<std::size_t>(n));
  std::vector<std::uint8_t> codes(in_runs ? 0 : static_cast<std::size_t>(source.cols));
  for (std::size_t i = 0; i < std::size(firsts); ++i) {
    const auto at = static_cast<std::int64_t>(i) * run * t.groups;
    float* scales = t.scales.get() + at;
    float* offsets = t.offsets.get() + at;
    if (in_runs)
      source.grouped_panels({firsts[i], run, nullptr, scales, offsets});
    else
      source.grouped(firsts[i], {codes.data(), scales, offsets});
  }
  detail::quant_param_facts facts(source.kind);
  const std::int32_t factor = detail::first_factor(t, n);
  for (std::int64_t i = 0; i < n; ++i)
    facts.look_at(t.scales[i], t.offsets[i], factor);
  return facts;
}

} // namespace

image_layout packed_layout(const weight_source& source) {
  const auto described = detail::describe(source, "a matrix");
  if (!described.ok()) return {};
  detail::packed_view w = described.value();
  if (w.code_group > 0)
    detail::set_lines_form(w);
  else if (w.grouped())
    detail::set_form(w, facts_of_some_rows(source), w.cols / w.group);
  const std::int64_t order =
      source.column_order ? w.cols * static_cast<std::int64_t>(sizeof(std::int32_t)) : 0;
  return {w.codes_stride, w.scales_stride, order};
}

std::int64_t packed_bytes(const weight_source& source) {
  const image_layout image = packed_layout(source);
  const std::int64_t panels = (source.rows + detail::lanes - 1) / detail::lanes;
  return panels * (image.code_panel_bytes + image.scale_panel_bytes) + image.order_bytes;
}

} // namespace twill::gpu
