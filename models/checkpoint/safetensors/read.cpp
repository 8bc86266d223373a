#include "models/checkpoint/safetensors/read.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "models/checkpoint/json.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models::safetensors {
namespace {

/// The format allows headers of 100 MB. This bound is enough for a third of a million tensors.
constexpr std::uint64_t max_header_bytes = std::uint64_t{32} << 20;

failure bad_format(std::string detail) {
  return {errc::bad_format, std::move(detail)};
}

failure bad_tensor(std::string_view name, const std::string& why) {
  return bad_format("tensor " + quoted_name(name) + ": " + why);
}

/// Reads a list of integers that are at least 0. Returns false if `list` is not such a list.
bool read_numbers(const value* list, std::vector<std::int64_t>& out) {
  if (list == nullptr || list->as_list() == nullptr) return false;
  for (const value& item : *list->as_list()) {
    if (item.as_int() == nullptr || *item.as_int() < 0) return false;
    out.push_back(*item.as_int());
  }
  return true;
}

struct placed_tensor {
  stored_tensor tensor;
  std::uint64_t begin = 0; ///< offset in the data section
  std::uint64_t end = 0;
};

result<placed_tensor> read_tensor(const std::string& name, const value& entry,
                                  std::uint64_t data_bytes) {
  placed_tensor read;
  tensor_info& info = read.tensor.info;
  info.name = name;
  const value* type = entry.find("dtype");
  if (type == nullptr || type->as_string() == nullptr)
    return bad_tensor(name, "`dtype` must be a string");
  read.tensor.element = find_element(*type->as_string());
  if (read.tensor.element == nullptr)
    return failure{errc::unsupported, "tensor " + quoted_name(name) + ": unknown dtype " +
                                          quoted_name(*type->as_string())};
  info.type = read.tensor.element->name;
  if (!read_numbers(entry.find("shape"), info.shape))
    return bad_tensor(name, "`shape` must be a list of whole numbers");
  std::vector<std::int64_t> range;
  if (!read_numbers(entry.find("data_offsets"), range) || range.size() != 2)
    return bad_tensor(name, "`data_offsets` must be two whole numbers");
  read.begin = static_cast<std::uint64_t>(range[0]);
  read.end = static_cast<std::uint64_t>(range[1]);
  if (read.begin > read.end || read.end > data_bytes)
    return bad_tensor(name, "bytes " + std::to_string(range[0]) + ".." + std::to_string(range[1]) +
                                " must lie in the data section of " + std::to_string(data_bytes) +
                                " bytes");
  const std::int64_t n = value_count(info.shape);
  info.bytes = range[1] - range[0];
  if (n < 0 || n * read.tensor.element->bytes != info.bytes)
    return bad_tensor(name, "shape " + shape_text(info.shape) + " of " + info.type +
                                " does not make " + std::to_string(info.bytes) + " bytes");
  return read;
}

/// Fails unless the tensors cover the data section without gap or overlap.
result<nothing> check_cover(std::vector<placed_tensor>& tensors, std::uint64_t data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const placed_tensor& a, const placed_tensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t covered = 0;
  for (const placed_tensor& t : tensors) {
    if (t.begin != covered)
      return bad_tensor(t.tensor.info.name, "begins at byte " + std::to_string(t.begin) +
                                                ", the tensor before ends at " +
                                                std::to_string(covered));
    covered = t.end;
  }
  if (covered != data_bytes)
    return bad_format("the tensors end at byte " + std::to_string(covered) + " of " +
                      std::to_string(data_bytes) + " bytes of data");
  return nothing{};
}

result<nothing> read_mapping(tensor_table& table,
                             const std::shared_ptr<const mapped_file>& mapping) {
  const auto all = mapping->bytes();
  std::uint64_t header_bytes = 0;
  if (all.size() < sizeof header_bytes) return bad_format("the file ends inside its header size");
  std::memcpy(&header_bytes, all.data(), sizeof header_bytes);
  if (header_bytes > all.size() - sizeof header_bytes)
    return bad_format("a header of " + std::to_string(header_bytes) + " bytes passes the end of " +
                      std::to_string(all.size()) + " bytes");
  if (header_bytes > max_header_bytes)
    return bad_format("the header must be at most " + std::to_string(max_header_bytes) +
                      " bytes, got " + std::to_string(header_bytes));
  const auto header_text = all.subspan(sizeof header_bytes, header_bytes);
  const auto data = all.subspan(sizeof header_bytes + header_bytes);
  auto header =
      parse_json({reinterpret_cast<const char*>(header_text.data()), header_text.size()}, "header");
  if (!header.ok()) return header.error();
  const value_object* entries = header.value().as_object();
  if (entries == nullptr) return bad_format("the header must be a JSON object");

  std::vector<placed_tensor> tensors;
  for (const auto& [name, entry] : *entries) {
    if (name == "__metadata__") continue;
    auto read = read_tensor(name, entry, data.size());
    if (!read.ok()) return read.error();
    tensors.push_back(std::move(read).value());
  }
  if (auto covered = check_cover(tensors, data.size()); !covered.ok()) return covered;
  for (placed_tensor& t : tensors) {
    t.tensor.bytes = data.subspan(t.begin, t.end - t.begin);
    t.tensor.file = mapping;
    if (auto added = table.add(std::move(t.tensor)); !added.ok()) return added;
  }
  return nothing{};
}

} // namespace

result<nothing> read_into(tensor_table& table, const std::string& path) {
  auto mapping = mapped_file::open(path);
  if (!mapping.ok()) return mapping.error();
  auto read = read_mapping(table, mapping.value());
  if (!read.ok()) return in_file(path, read.error());
  return read;
}

} // namespace twill::models::safetensors
