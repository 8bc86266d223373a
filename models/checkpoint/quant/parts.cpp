#include "models/checkpoint/quant/parts.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include "models/checkpoint/quoted.hpp"

namespace twill::models::quant {
namespace {

failure wrong(const std::string& name, const std::string& expected, const tensor_info& found) {
  return {errc::bad_tensor, "tensor " + quoted_name(name) + " must be " + expected + ", got " +
                                found.type + " " + shape_text(found.shape)};
}

/// Finds a stored tensor, and fails if its type or shape is not the given one.
result<const stored_tensor*> expect(const tensor_table& table, const std::string& name,
                                    const char* type, const std::vector<std::int64_t>& shape) {
  auto found = table.stored(name);
  if (!found.ok()) return found;
  const tensor_info& info = found.value()->info;
  if (info.type != type || info.shape != shape)
    return wrong(name, std::string(type) + " " + shape_text(shape), info);
  return found;
}

std::int64_t group_count(const quant_config& config, std::int64_t cols) {
  return config.group_size < 0 ? 1 : (cols + config.group_size - 1) / config.group_size;
}

result<nothing> read_groups(const tensor_table& table, const quant_config& config,
                            matrix_parts& parts) {
  parts.group_of_column.resize(static_cast<std::size_t>(parts.cols));
  const std::string name = parts.stem + ".g_idx";
  if (config.method == method::awq || table.peek(name) == nullptr) {
    for (std::int64_t c = 0; c < parts.cols; ++c)
      parts.group_of_column[static_cast<std::size_t>(c)] =
          config.group_size < 0 ? 0 : static_cast<std::int32_t>(c / config.group_size);
    return nothing{};
  }
  auto stored = expect(table, name, "I32", {parts.cols});
  if (!stored.ok()) return stored.error();
  std::memcpy(parts.group_of_column.data(), stored.value()->bytes.data(),
              stored.value()->bytes.size());
  for (const std::int32_t group : parts.group_of_column)
    if (group < 0 || group >= parts.groups)
      return failure{errc::bad_tensor, "tensor " + quoted_name(name) + ": a group must be 0.." +
                                           std::to_string(parts.groups - 1) + ", got " +
                                           std::to_string(group)};
  return nothing{};
}

result<nothing> read_scales(const tensor_table& table, matrix_parts& parts) {
  const std::string name = parts.stem + ".scales";
  auto stored = table.stored(name);
  if (!stored.ok()) return stored.error();
  const stored_tensor& scales = *stored.value();
  const std::vector<std::int64_t> shape = {parts.groups, parts.rows};
  if (scales.info.shape != shape || (scales.info.type != "F16" && scales.info.type != "BF16"))
    return wrong(name, "F16 or BF16 " + shape_text(shape), scales.info);
  parts.scales = scales.bytes.data();
  parts.scale_kind = scales.element->dense;
  const std::uint16_t exponent = parts.scale_kind == gpu::weight_kind::f16 ? 0x7c00U : 0x7f80U;
  bool finite = true;
  for (std::size_t at = 0; at < scales.bytes.size(); at += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, scales.bytes.data() + at, sizeof bits);
    finite = finite && (bits & exponent) != exponent;
  }
  if (!finite)
    return failure{errc::bad_tensor,
                   "tensor " + quoted_name(name) + ": every scale must be finite"};
  return nothing{};
}

} // namespace

std::vector<std::string> part_names(const std::string& stem) {
  return {stem + ".qweight", stem + ".qzeros", stem + ".scales", stem + ".g_idx"};
}

result<matrix_parts> measure(const tensor_table& table, const quant_config& config,
                             const std::string& stem) {
  const std::string name = stem + ".qweight";
  const stored_tensor* codes = table.peek(name);
  if (codes == nullptr)
    return failure{errc::missing_tensor,
                   "tensor " + quoted_name(name) + " is not in the checkpoint"};
  const tensor_info& info = codes->info;
  if (info.type != "I32" || info.shape.size() != 2 || info.bytes == 0)
    return wrong(name, "I32 of 2 dimensions", info);
  const std::int64_t per = 32 / config.bits;
  matrix_parts parts;
  parts.stem = stem;
  parts.rows = config.method == method::awq ? info.shape[1] * per : info.shape[1];
  parts.cols = config.method == method::awq ? info.shape[0] : info.shape[0] * per;
  parts.groups = group_count(config, parts.cols);
  if (parts.rows % per != 0 || parts.cols % 8 != 0 || parts.cols > INT32_MAX)
    return failure{errc::unsupported,
                   "tensor " + quoted_name(name) + ": a matrix of (" + std::to_string(parts.rows) +
                       ", " + std::to_string(parts.cols) + ") has no whole words of packed values"};
  return parts;
}

result<matrix_parts> find_parts(const tensor_table& table, const quant_config& config,
                                const std::string& stem) {
  auto measured = measure(table, config, stem);
  if (!measured.ok()) return measured;
  matrix_parts parts = std::move(measured).value();
  auto codes = table.stored(stem + ".qweight");
  if (!codes.ok()) return codes.error();
  parts.codes = codes.value()->bytes.data();
  auto zeros =
      expect(table, stem + ".qzeros", "I32", {parts.groups, parts.rows / (32 / config.bits)});
  if (!zeros.ok()) return zeros.error();
  parts.zeros = zeros.value()->bytes.data();
  if (auto scales = read_scales(table, parts); !scales.ok()) return scales.error();
  if (auto groups = read_groups(table, config, parts); !groups.ok()) return groups.error();
  return parts;
}

} // namespace twill::models::quant
