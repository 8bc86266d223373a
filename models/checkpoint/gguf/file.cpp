#include "models/checkpoint/gguf/file.hpp"

#include <cstdint>
#include <utility>

#include "models/checkpoint/derived_tensor.hpp"
#include "models/checkpoint/element.hpp"
#include "models/checkpoint/gguf/split_name.hpp"
#include "models/checkpoint/quoted.hpp"

namespace twill::models::gguf {
namespace {

constexpr std::int64_t most_parts = 65535; // the file's key for the number of parts is a u16

/// The number of a file and how many files the model has, from the file's metadata.
struct place {
  int number = 1; ///< from 1
  int count = 1;

  std::string text() const {
    return "part " + std::to_string(number) + " of " + std::to_string(count);
  }
};

result<place> place_of(const part& p) {
  auto count = p.meta().get_int_or("split.count", 0, most_parts, 0);
  if (!count.ok()) return count.error();
  if (count.value() <= 1) return place{};
  auto number = p.meta().get_int("split.no", 0, count.value() - 1);
  if (!number.ok()) return number.error();
  return place{static_cast<int>(number.value()) + 1, static_cast<int>(count.value())};
}

/// Opens one of the several GGUF files of a model, the one with the number `number`. The files'
/// names differ from `name` only in that number. Checks that the file states this number itself.
result<part> open_part(const split_name& name, int number) {
  const std::string path = name.of_part(number);
  const place wanted{number, name.count};
  auto opened = part::open(path);
  if (!opened.ok() && opened.code() == errc::file_unreadable)
    return failure{opened.code(),
                   opened.detail() + "; this is " + wanted.text() + " of a model in several files"};
  if (!opened.ok()) return opened;
  const auto is = place_of(opened.value());
  if (!is.ok()) return in_file(path, is.error());
  if (is.value().number == wanted.number && is.value().count == wanted.count) return opened;
  return failure{errc::bad_metadata, path + ": must be " + wanted.text() +
                                         " of a model, as its name says, but its metadata say " +
                                         is.value().text()};
}

/// Returns all parts of a model in order; `opened`, from `path`, is one of them.
result<std::vector<part>> with_its_neighbours(part opened, const std::string& path) {
  std::vector<part> parts;
  const auto is = place_of(opened);
  if (!is.ok()) return in_file(path, is.error());
  const auto [own, count] = is.value();
  if (count == 1) {
    parts.push_back(std::move(opened));
    return parts;
  }
  const auto name = parse_split_name(path);
  if (!name || name->number != own || name->count != count)
    return failure{errc::bad_metadata, path + ": is " + is.value().text() +
                                           " of a model, so its name must be " +
                                           split_name{"NAME", own, count}.of_part(own)};
  for (int number = 1; number <= count; ++number) {
    auto next = number == own ? result<part>(std::move(opened)) : open_part(*name, number);
    if (!next.ok()) return next.error();
    parts.push_back(std::move(next).value());
  }
  return parts;
}

} // namespace

result<std::shared_ptr<const file>> file::open(const std::string& path) {
  auto first = part::open(path);
  if (!first.ok()) return first.error();
  auto parts = with_its_neighbours(std::move(first).value(), path);
  if (!parts.ok()) return parts.error();
  std::shared_ptr<file> opened(new file);
  opened->version_ = parts.value().front().version();
  opened->meta_ = parts.value().front().take_meta();
  for (const part& p : parts.value())
    if (auto taken = opened->take(p); !taken.ok())
      return in_file(p.mapping()->path(), taken.error());
  if (auto counted = opened->check_count(); !counted.ok())
    return in_file(opened->files_.front()->path(), counted.error());
  opened->leave_out_derived();
  return std::shared_ptr<const file>(std::move(opened));
}

result<nothing> file::take(const part& p) {
  files_.push_back(p.mapping());
  for (const part_tensor& t : p.tensors()) {
    if (!by_name_.emplace(t.info.name, tensors_.size()).second)
      return failure{errc::bad_format,
                     "tensor " + quoted_name(t.info.name) + ": the name appears twice"};
    tensors_.push_back({t, p.mapping().get()});
  }
  return nothing{};
}

result<nothing> file::check_count() const {
  const auto n = static_cast<std::int64_t>(tensors_.size());
  auto wanted = meta_.get_int_or("split.tensors.count", 0, INT64_MAX, n);
  if (!wanted.ok()) return wanted.error();
  if (wanted.value() == n) return nothing{};
  return failure{errc::bad_format, "the parts must hold " + std::to_string(wanted.value()) +
                                       " tensors (`split.tensors.count`), got " +
                                       std::to_string(n)};
}

void file::leave_out_derived() {
  std::erase_if(tensors_, [](const tensor& t) { return is_derived(t.part.info); });
  by_name_.clear();
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    by_name_.emplace(tensors_[i].part.info.name, i);
}

std::vector<tensor_info> file::tensors() const {
  std::vector<tensor_info> all;
  all.reserve(tensors_.size());
  for (const tensor& t : tensors_)
    all.push_back(t.part.info);
  return all;
}

const tensor_info* file::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second].part.info;
}

void file::read_ahead(std::string_view name) const {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return;
  const tensor& t = tensors_[it->second];
  t.file->read_ahead(t.part.bytes);
}

void file::release(std::string_view name) const {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return;
  const tensor& t = tensors_[it->second];
  t.file->release(t.part.bytes);
}

result<const part_tensor*> file::require(std::string_view name) const {
  const auto it = by_name_.find(name);
  if (it == by_name_.end())
    return failure{errc::missing_tensor, "tensor " + quoted_name(name) + " is not in the file"};
  const part_tensor& t = tensors_[it->second].part;
  if (t.kind == nullptr || t.kind->block_bytes == 0)
    return failure{errc::unsupported, "tensor " + quoted_name(name) + " has kind " + t.info.type +
                                          "; twill reads " + readable_kinds()};
  return &t;
}

result<gpu::weight_source> file::matrix(std::string_view name) const {
  auto found = require(name);
  if (!found.ok()) return found.error();
  const part_tensor& t = *found.value();
  if (t.info.shape.size() != 2)
    return failure{errc::bad_tensor, "tensor " + quoted_name(name) +
                                         " must have 2 dimensions, got " +
                                         std::to_string(t.info.shape.size())};
  const kind_info* kind = t.kind;
  const std::byte* data = t.bytes.data();
  gpu::weight_source source;
  source.kind = kind->packed;
  source.rows = t.info.shape[0];
  source.cols = t.info.shape[1];
  const std::int64_t row_bytes = source.cols / kind->block_values * kind->block_bytes;
  if (kind->block_values == 1) {
    source.dense_row = [data, row_bytes](std::int64_t row) -> const void* {
      return data + row * row_bytes;
    };
  } else {
    source.group = kind->group;
    source.grouped = [data, row_bytes, kind, cols = source.cols](std::int64_t row,
                                                                 const gpu::grouped_row& out) {
      decode_row(*kind, data + row * row_bytes, cols, out);
    };
  }
  return source;
}

result<std::vector<float>> file::vector(std::string_view name) const {
  auto found = require(name);
  if (!found.ok()) return found.error();
  const part_tensor& t = *found.value();
  if (t.kind->block_values != 1)
    return failure{errc::unsupported, "tensor " + quoted_name(name) + " is a vector of kind " +
                                          t.info.type + "; twill reads vectors of " +
                                          readable_kinds(true)};
  read_ahead(name);
  std::vector<float> values(static_cast<std::size_t>(t.info.bytes / t.kind->block_bytes));
  widen_values(t.kind->packed, t.bytes.data(), static_cast<std::int64_t>(values.size()),
               values.data());
  return values;
}

} // namespace twill::models::gguf
