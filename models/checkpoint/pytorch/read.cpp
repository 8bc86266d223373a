#include "models/checkpoint/pytorch/read.hpp"

#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "models/checkpoint/pytorch/unpickle.hpp"
#include "models/checkpoint/pytorch/zip.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models::pytorch {
namespace {

using bytes = std::span<const std::byte>;

/// Greatest size of a pickle; a pickle of a thousand tensors takes about 200 kB.
constexpr std::size_t max_pickle_bytes = std::size_t{32} << 20;

bool begins_with(bytes all, std::string_view magic) {
  return all.size() >= magic.size() && std::memcmp(all.data(), magic.data(), magic.size()) == 0;
}

bool is_row_major(const pickled_tensor& t) {
  std::int64_t expected = 1;
  for (std::size_t d = t.shape.size(); d-- > 0;) {
    if (t.shape[d] > 1 && t.strides[d] != expected) return false;
    expected *= t.shape[d];
  }
  return true;
}

/// Returns the archive's entries by their names within its one top folder: "archive/data.pkl"
/// becomes "data.pkl".
result<std::map<std::string_view, bytes>> entries_of(bytes all) {
  auto read = read_zip(all);
  if (!read.ok()) return read.error();
  std::map<std::string_view, bytes> entries;
  for (const zip_entry& e : read.value()) {
    const std::size_t slash = e.name.find('/');
    entries.emplace(slash == std::string_view::npos ? e.name : e.name.substr(slash + 1), e.bytes);
  }
  return entries;
}

result<stored_tensor> place(const pickled_tensor& t,
                            const std::map<std::string_view, bytes>& entries) {
  const auto refuse = [&](errc code, const std::string& why) {
    return failure{code, "tensor " + quoted_name(t.name) + ": " + why};
  };
  stored_tensor placed;
  placed.element = find_element(t.element);
  const std::int64_t n = value_count(t.shape);
  if (n < 0) return refuse(errc::bad_format, "shape " + shape_text(t.shape) + " is impossible");
  if (!is_row_major(t))
    return refuse(errc::unsupported, "must be row-major and contiguous, its shape is " +
                                         shape_text(t.shape) + ", its strides are " +
                                         shape_text(t.strides) + " (save it .contiguous())");
  const std::string key = "data/" + std::string(t.storage);
  const auto entry = entries.find(key);
  if (entry == entries.end())
    return refuse(errc::bad_format, "its storage " + quoted_name(key) + " is not in the archive");
  const std::int64_t held = static_cast<std::int64_t>(entry->second.size()) / placed.element->bytes;
  if (t.storage_values < 0 || t.storage_values > held)
    return refuse(errc::bad_format, "its storage should hold " + std::to_string(t.storage_values) +
                                        " values, got " + std::to_string(held));
  if (t.offset < 0 || t.offset > t.storage_values || n > t.storage_values - t.offset)
    return refuse(errc::bad_format, "shape " + shape_text(t.shape) + " from value " +
                                        std::to_string(t.offset) + " passes its storage of " +
                                        std::to_string(t.storage_values) + " values");
  placed.info = {std::string(t.name), t.shape, placed.element->name, n * placed.element->bytes};
  placed.bytes = entry->second.subspan(static_cast<std::size_t>(t.offset * placed.element->bytes),
                                       static_cast<std::size_t>(placed.info.bytes));
  return placed;
}

result<nothing> read_mapping(tensor_table& table,
                             const std::shared_ptr<const mapped_file>& mapping) {
  const bytes all = mapping->bytes();
  if (begins_with(all, "\x80"))
    return failure{errc::unsupported, "a file of torch before 1.6 (no zip); load it and save it "
                                      "again with a newer torch, or as safetensors"};
  auto entries = entries_of(all);
  if (!entries.ok()) return entries.error();
  const auto pickle = entries.value().find("data.pkl");
  if (pickle == entries.value().end())
    return failure{errc::bad_format, "the archive has no data.pkl"};
  if (pickle->second.size() > max_pickle_bytes)
    return failure{errc::unsupported, "data.pkl must be at most " +
                                          std::to_string(max_pickle_bytes) + " bytes, got " +
                                          std::to_string(pickle->second.size())};
  const auto order = entries.value().find("byteorder");
  if (order != entries.value().end() && begins_with(order->second, "big"))
    return failure{errc::unsupported, "big-endian files are not supported"};
  auto tensors = unpickle_tensors(pickle->second);
  if (!tensors.ok()) return tensors.error();
  for (const pickled_tensor& t : tensors.value()) {
    auto placed = place(t, entries.value());
    if (!placed.ok()) return placed.error();
    placed.value().file = mapping;
    if (auto added = table.add(std::move(placed).value()); !added.ok()) return added;
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

} // namespace twill::models::pytorch
