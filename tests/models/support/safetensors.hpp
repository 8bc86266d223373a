// Reads the f32 tensors of a safetensors file, for golden data.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/json.hpp"

namespace twill::test {

inline std::map<std::string, std::vector<float>> read_f32_tensors(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t header_size = 0;
  if (bytes.size() < 8) throw std::runtime_error("cannot read " + path);
  std::memcpy(&header_size, bytes.data(), 8);
  const value header = json_reader(bytes.substr(8, header_size)).read_document();
  std::map<std::string, std::vector<float>> tensors;
  for (const auto& [name, t] : *header.as_object()) {
    if (t.find("dtype") == nullptr || *t.find("dtype")->as_string() != "F32") continue;
    const value_list& range = *t.find("data_offsets")->as_list();
    const auto begin = static_cast<std::size_t>(*range[0].as_int());
    const auto end = static_cast<std::size_t>(*range[1].as_int());
    std::vector<float> values((end - begin) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + 8 + header_size + begin, end - begin);
    tensors.emplace(name, std::move(values));
  }
  return tensors;
}

} // namespace twill::test
