// Builds small GGUF files in memory for tests, both valid and contradictory ones.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace twill::test {

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string raw_string(std::string_view s) {
  return raw(std::uint64_t{s.size()}).append(s);
}

/// IEEE binary16 of a float: cut off, not rounded, and zero where it is below the normal range.
inline std::uint16_t half(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const auto exponent = static_cast<int>((bits >> 23) & 0xff) - 127 + 15;
  if (exponent <= 0) return static_cast<std::uint16_t>((bits >> 16) & 0x8000U); // too small: zero
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000U) |
                                    (static_cast<std::uint32_t>(exponent) << 10) |
                                    ((bits >> 13) & 0x3ffU));
}

class gguf_writer {
public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;

  /// Adds a pair. `value_bytes` are written unchanged.
  void add(std::string_view key, std::uint32_t type, const std::string& value_bytes) {
    pairs_.push_back(raw_string(key) + raw(type) + value_bytes);
  }
  void add_string(std::string_view key, std::string_view v) { add(key, 8, raw_string(v)); }
  void add_u32(std::string_view key, std::uint32_t v) { add(key, 4, raw(v)); }
  void add_f32(std::string_view key, float v) { add(key, 6, raw(v)); }
  void add_bool(std::string_view key, bool v) { add(key, 7, raw(static_cast<std::uint8_t>(v))); }
  void add_array(std::string_view key, std::uint32_t element_type, std::uint64_t count,
                 const std::string& element_bytes) {
    add(key, 9, raw(element_type) + raw(count) + element_bytes);
  }
  void add_strings(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& v : values)
      bytes += raw_string(v);
    add_array(key, 8, values.size(), bytes);
  }
  void add_ints(std::string_view key, const std::vector<std::int32_t>& values) {
    std::string bytes;
    for (const std::int32_t v : values)
      bytes += raw(v);
    add_array(key, 5, values.size(), bytes);
  }

  /// `shape` is outermost first. The offset is the end of the tensors before.
  void add_tensor(std::string_view name, const std::vector<std::uint64_t>& shape,
                  std::uint32_t kind, const std::string& bytes) {
    add_tensor_at(name, shape, kind, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
  }
  /// Adds a tensor's header without data.
  void add_tensor_at(std::string_view name, const std::vector<std::uint64_t>& shape,
                     std::uint32_t kind, std::uint64_t offset) {
    std::string header = raw_string(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (auto it = shape.rbegin(); it != shape.rend(); ++it)
      header += raw(*it);
    tensors_.push_back(header + raw(kind) + raw(offset));
  }

  std::string build() const {
    std::string file = "GGUF" + raw(version) + raw(std::uint64_t{tensors_.size()}) +
                       raw(std::uint64_t{pairs_.size()});
    for (const std::string& p : pairs_)
      file += p;
    for (const std::string& t : tensors_)
      file += t;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

private:
  std::vector<std::string> pairs_;
  std::vector<std::string> tensors_;
  std::string data_;
};

} // namespace twill::test
