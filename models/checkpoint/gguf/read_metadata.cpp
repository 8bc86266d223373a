#include "models/checkpoint/gguf/read_metadata.hpp"

#include <limits>
#include <string>
#include <utility>

namespace twill::models::gguf {
namespace {

// The value types that the GGUF specification defines.
enum class value_type : std::uint32_t {
  u8 = 0,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64,
};
constexpr std::uint32_t last_value_type = 12;

/// Returns the least number of bytes that a value of the type takes in the file.
std::uint64_t least_bytes(value_type t) {
  switch (t) {
  case value_type::u8:
  case value_type::i8:
  case value_type::boolean:
    return 1;
  case value_type::u16:
  case value_type::i16:
    return 2;
  case value_type::u32:
  case value_type::i32:
  case value_type::f32:
    return 4;
  case value_type::array:
    return 12;
  case value_type::string:
  case value_type::u64:
  case value_type::i64:
  case value_type::f64:
    break;
  }
  return 8;
}

bool is_float(value_type t) {
  return t == value_type::f32 || t == value_type::f64;
}

failure bad(std::string_view key, const std::string& why, std::uint64_t at) {
  return {errc::bad_format, "metadata key `" + std::string(key.substr(0, 200)) + "`: " + why +
                                " at offset " + std::to_string(at)};
}

std::int64_t read_int(cursor& in, value_type t) {
  switch (t) {
  case value_type::u8:
  case value_type::boolean:
    return in.read<std::uint8_t>();
  case value_type::i8:
    return in.read<std::int8_t>();
  case value_type::u16:
    return in.read<std::uint16_t>();
  case value_type::i16:
    return in.read<std::int16_t>();
  case value_type::u32:
    return in.read<std::uint32_t>();
  case value_type::i32:
    return in.read<std::int32_t>();
  default:
    return in.read<std::int64_t>();
  }
}

double read_float(cursor& in, value_type t) {
  return t == value_type::f32 ? static_cast<double>(in.read<float>()) : in.read<double>();
}

metadata::entry read_u64(cursor& in) {
  const auto v = in.read<std::uint64_t>();
  if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return static_cast<double>(v);
  return static_cast<std::int64_t>(v);
}

metadata::entry read_values(cursor& in, value_type t, std::uint64_t count) {
  const auto n = static_cast<std::size_t>(count);
  if (t == value_type::string) {
    string_array values;
    values.reserve(n);
    for (std::size_t i = 0; i < n && !in.failed(); ++i)
      values.emplace_back(in.read_string());
    return values;
  }
  if (is_float(t)) {
    float_array values(n);
    for (double& v : values)
      v = read_float(in, t);
    return values;
  }
  int_array values(n);
  for (std::int64_t& v : values)
    v = read_int(in, t);
  return values;
}

result<metadata::entry> read_array(cursor& in, std::string_view key) {
  const std::uint64_t at = in.position();
  const auto raw_type = in.read<std::uint32_t>();
  const auto count = in.read<std::uint64_t>();
  if (in.failed()) return bad(key, "the file ends inside an array header", at);
  if (raw_type > last_value_type)
    return bad(key, "array element type " + std::to_string(raw_type) + " does not exist", at);
  const auto type = static_cast<value_type>(raw_type);
  if (type == value_type::array)
    return failure{errc::unsupported, "metadata key `" + std::string(key.substr(0, 200)) +
                                          "`: arrays of arrays are not supported"};
  // The division cannot overflow, as a product with a huge count could.
  if (count > in.remaining() / least_bytes(type))
    return bad(key, "an array of " + std::to_string(count) + " values passes the end of the file",
               at);
  metadata::entry values = read_values(in, type, count);
  if (in.failed()) return bad(key, "the file ends inside an array of " + std::to_string(count), at);
  return values;
}

result<metadata::entry> read_entry(cursor& in, std::string_view key) {
  const std::uint64_t at = in.position();
  const auto raw_type = in.read<std::uint32_t>();
  if (!in.failed() && raw_type > last_value_type)
    return bad(key, "value type " + std::to_string(raw_type) + " does not exist", at);
  const auto type = static_cast<value_type>(raw_type);
  if (!in.failed() && type == value_type::array) return read_array(in, key);

  metadata::entry value;
  if (type == value_type::string)
    value = std::string(in.read_string());
  else if (is_float(type))
    value = read_float(in, type);
  else if (type == value_type::u64)
    value = read_u64(in);
  else
    value = read_int(in, type);
  if (in.failed()) return bad(key, "the value passes the end of the file", at);
  if (type == value_type::boolean) {
    const std::int64_t raw = std::get<std::int64_t>(value);
    if (raw != 0 && raw != 1)
      return bad(key, "a bool must be 0 or 1, got " + std::to_string(raw), at);
    value = raw == 1;
  }
  return value;
}

} // namespace

result<metadata> read_metadata(cursor& in, std::uint64_t count) {
  metadata meta;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = in.position();
    const std::string_view key = in.read_string();
    if (in.failed() || key.empty())
      return failure{errc::bad_format,
                     "metadata key " + std::to_string(i) + " of " + std::to_string(count) +
                         " is empty or passes the end of the file at offset " + std::to_string(at)};
    auto entry = read_entry(in, key);
    if (!entry.ok()) return entry.error();
    if (!meta.entries.emplace(std::string(key), std::move(entry).value()).second)
      return bad(key, "the key appears twice", at);
  }
  return meta;
}

} // namespace twill::models::gguf
