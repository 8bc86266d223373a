#include "models/checkpoint/tensor_table.hpp"

#include <algorithm>
#include <utility>

#include "models/checkpoint/derived_tensor.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models {

failure not_numbers(const tensor_info& t) {
  return {errc::unsupported, "tensor " + quoted_name(t.name) + " has type " + t.type +
                                 "; weights must be F32, F16 or BF16"};
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape)
    text += (text.size() == 1 ? "" : ", ") + std::to_string(extent);
  return text + ")";
}

std::int64_t value_count(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 56; // with 8 bytes per value: below 2^63 bytes
  std::int64_t n = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return -1;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (extent > most / n) return -1;
    n *= extent;
  }
  return empty ? 0 : n;
}

result<nothing> tensor_table::add(stored_tensor tensor) {
  if (is_derived(tensor.info)) return nothing{};
  const auto [at, added] = by_name_.emplace(tensor.info.name, tensors_.size());
  if (!added) {
    const stored_tensor& before = tensors_[at->second];
    return failure{errc::bad_format, "tensor " + quoted_name(tensor.info.name) + " is in " +
                                         before.file->path() + " and again in " +
                                         tensor.file->path()};
  }
  tensors_.push_back(std::move(tensor));
  return nothing{};
}

std::vector<tensor_info> tensor_table::tensors() const {
  std::vector<tensor_info> all;
  all.reserve(tensors_.size());
  for (const stored_tensor& t : tensors_)
    all.push_back(t.info);
  return all;
}

std::vector<std::shared_ptr<const mapped_file>> tensor_table::files() const {
  std::vector<std::shared_ptr<const mapped_file>> all;
  for (const stored_tensor& t : tensors_) // tensors of the same file are adjacent
    if (all.empty() ||
        (all.back() != t.file && std::find(all.begin(), all.end(), t.file) == all.end()))
      all.push_back(t.file);
  return all;
}

const stored_tensor* tensor_table::peek(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

const tensor_info* tensor_table::find(std::string_view name) const {
  const stored_tensor* t = peek(name);
  return t == nullptr ? nullptr : &t->info;
}

bool tensor_table::lists(std::string_view name) const {
  return peek(name) != nullptr || absent_.contains(name);
}

result<const stored_tensor*> tensor_table::stored(std::string_view name) const {
  const stored_tensor* t = peek(name);
  if (t == nullptr)
    return failure{errc::missing_tensor,
                   "tensor " + quoted_name(name) + " is not in the checkpoint"};
  return t;
}

result<gpu::weight_source> tensor_table::matrix(std::string_view name) const {
  auto found = stored(name);
  if (!found.ok()) return found.error();
  const stored_tensor& t = *found.value();
  if (!t.element->is_weight) return not_numbers(t.info);
  if (t.info.shape.size() != 2)
    return failure{errc::bad_tensor, "tensor " + quoted_name(name) +
                                         " must have 2 dimensions, got " +
                                         shape_text(t.info.shape)};
  gpu::weight_source source;
  source.kind = t.element->dense;
  source.rows = t.info.shape[0];
  source.cols = t.info.shape[1];
  source.dense_row = [data = t.bytes.data(), row_bytes = source.cols * t.element->bytes](
                         std::int64_t row) -> const void* { return data + row * row_bytes; };
  return source;
}

result<std::vector<float>> tensor_table::vector(std::string_view name) const {
  auto found = stored(name);
  if (!found.ok()) return found.error();
  const stored_tensor& t = *found.value();
  if (!t.element->is_weight) return not_numbers(t.info);
  read_ahead(name);
  std::vector<float> values(t.bytes.size() / static_cast<std::size_t>(t.element->bytes));
  widen_values(t.element->dense, t.bytes.data(), static_cast<std::int64_t>(values.size()),
               values.data());
  return values;
}

void tensor_table::read_ahead(std::string_view name) const {
  if (const stored_tensor* t = peek(name)) t->file->read_ahead(t->bytes);
}

void tensor_table::release(std::string_view name) const {
  if (const stored_tensor* t = peek(name)) t->file->release(t->bytes);
}

} // namespace twill::models
