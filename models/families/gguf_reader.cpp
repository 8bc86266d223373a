#include "models/families/gguf_reader.hpp"

#include <limits>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::models::families {
namespace {

constexpr std::int64_t most_int32 = std::numeric_limits<std::int32_t>::max();

} // namespace

gguf_reader::gguf_reader(const gguf::metadata& meta) : meta_(&meta) {
  const auto* architecture = meta.find<std::string>("general.architecture");
  TWILL_ASSERT(architecture != nullptr, "a GGUF file's family is known by its architecture");
  prefix_ = *architecture + ".";
}

template <class T>
T gguf_reader::keep(result<T> read, T fallback) {
  if (read.ok()) return std::move(read).value();
  if (outcome_.ok()) outcome_ = read.error();
  return fallback;
}

std::int32_t gguf_reader::size(const char* key) {
  return static_cast<std::int32_t>(
      keep(meta_->get_int(prefix_ + key, 1, most_int32), std::int64_t{1}));
}

std::int32_t gguf_reader::size_or(const char* key, std::int32_t fallback) {
  return static_cast<std::int32_t>(
      keep(meta_->get_int_or(prefix_ + key, 0, most_int32, fallback), std::int64_t{fallback}));
}

double gguf_reader::number(const char* key) {
  return keep(meta_->get_float(prefix_ + key), 0.0);
}

double gguf_reader::number_or(const char* key, double fallback) {
  return keep(meta_->get_float_or(prefix_ + key, fallback), fallback);
}

std::string gguf_reader::word_or(const char* key, const std::string& fallback) {
  return keep(meta_->get_string_or(prefix_ + key, fallback), fallback);
}

void gguf_reader::fail(errc code, const std::string& detail) {
  if (outcome_.ok()) outcome_ = failure{code, detail};
}

} // namespace twill::models::families
