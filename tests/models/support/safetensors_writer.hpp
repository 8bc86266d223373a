// Builds safetensors files in memory for tests, both valid and contradictory ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace twill::test {

template <class T>
std::string raw_values(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// A file of this header text and data, which may be invalid.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  return raw_values(std::vector<std::uint64_t>{header.size()}) + header + data;
}

class safetensors_writer {
public:
  void add(const std::string& name, const std::string& dtype,
           const std::vector<std::int64_t>& shape, const std::string& bytes) {
    std::string extents;
    for (const std::int64_t extent : shape)
      extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    entries_ += (entries_.empty() ? "" : ",") + ("\"" + name) + R"(":{"dtype":")" + dtype +
                R"(","shape":[)" + extents + R"(],"data_offsets":[)" +
                std::to_string(data_.size()) + "," + std::to_string(data_.size() + bytes.size()) +
                "]}";
    data_ += bytes;
  }
  std::string build() const { return safetensors_file("{" + entries_ + "}", data_); }

private:
  std::string entries_;
  std::string data_;
};

} // namespace twill::test
