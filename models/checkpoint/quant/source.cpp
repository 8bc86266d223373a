#include "models/checkpoint/quant/source.hpp"

#include <memory>
#include <utility>

#include "models/checkpoint/quant/reader.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models::quant {

result<gpu::weight_source> make_source(matrix_parts parts, const quant_config& config) {
  const auto codes = std::make_shared<stored_codes>();
  codes->layout = lay_out(parts.group_of_column);
  if (codes->layout.group == 0)
    return failure{errc::unsupported, "tensor " + quoted_name(parts.stem + ".g_idx") +
                                          ": groups must have multiples of 8 columns"};
  codes->bits = config.bits;
  codes->zero_added = config.method == method::gptq && config.zeros_less_one ? 1 : 0;
  codes->rows_interleaved = config.method == method::awq;
  codes->parts = std::move(parts);

  gpu::weight_source source;
  source.kind = config.bits == 4 ? gpu::weight_kind::grouped_u4 : gpu::weight_kind::grouped_u8;
  source.rows = codes->parts.rows;
  source.cols = codes->parts.cols;
  source.group = codes->layout.group;
  source.column_order = codes->layout.order;
  const std::shared_ptr<const stored_codes> from = codes;
  source.grouped = [from](std::int64_t row, const gpu::grouped_row& out) {
    read_row(*from, row, out);
  };
  if (config.method == method::awq)
    source.grouped_panels = [from](const gpu::grouped_rows& out) { read_awq_rows(*from, out); };
  else
    source.grouped_panels = [from](const gpu::grouped_rows& out) { read_gptq_rows(*from, out); };
  return source;
}

} // namespace twill::models::quant
