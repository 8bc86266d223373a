// Fuzz targets: each function opens a damaged file and, if it opens, reads everything in it.
//
// Each function returns true if the file was accepted. A crash, a sanitizer's report or memory use
// without bound is a finding; refusing the file never is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/gguf/file.hpp"
#include "models/checkpoint/json.hpp"
#include "models/checkpoint/pytorch/read.hpp"
#include "models/checkpoint/safetensors/read.hpp"
#include "models/model.hpp"
#include "tests/fuzz/use.hpp"

namespace twill::fuzz {

/// Elements above which a matrix is not read: a small file cannot hold so many.
inline constexpr std::int64_t most_values = 1 << 22;

/// Reads the first, the last and every 61st byte, so that a sanitizer reports a wrong range.
inline std::uint64_t sum_bytes(const void* data, std::size_t n) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t sum = n > 0 ? bytes[n - 1] : 0;
  for (std::size_t i = 0; i < n; i += 61)
    sum += bytes[i];
  return sum;
}

inline std::uint64_t read_grouped(const gpu::weight_source& m) {
  const auto groups = static_cast<std::size_t>(m.cols / m.group);
  constexpr std::int64_t most = gpu::grouped_rows::most_rows;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(m.cols));
  std::vector<float> scales(groups * most), offsets(groups * most);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(m.cols / 4 * most));
  std::uint64_t sum = 0;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    m.grouped(r, {codes.data(), scales.data(), offsets.data()});
    sum += sum_bytes(codes.data(), codes.size());
  }
  for (std::int64_t r = 0; m.grouped_panels && r < m.rows; r += most) {
    m.grouped_panels(
        {r, std::min<std::int64_t>(most, m.rows - r), words.data(), scales.data(), offsets.data()});
    sum += words[0];
  }
  return sum;
}

inline std::uint64_t read_all(const models::checkpoint& weights) {
  std::uint64_t sum = 0;
  for (const models::tensor_info& t : weights.tensors()) {
    auto m = weights.matrix(t.name);
    if (m.ok() && m.value().rows * m.value().cols < most_values) {
      const gpu::weight_source& source = m.value();
      const std::size_t width = source.kind == gpu::weight_kind::f32 ? 4 : 2;
      if (source.group > 0)
        sum += read_grouped(source);
      else
        for (std::int64_t r = 0; r < source.rows; ++r)
          sum += sum_bytes(source.dense_row(r), static_cast<std::size_t>(source.cols) * width);
    }
    if (auto v = weights.vector(t.name); v.ok())
      sum += sum_bytes(v.value().data(), v.value().size() * sizeof(float));
    weights.release(t.name);
  }
  return sum;
}

/// Keeps the optimiser from dropping what was read.
inline void keep(std::uint64_t sum) {
  static std::atomic<std::uint64_t> kept{0};
  kept += sum;
}

inline bool open_safetensors(const std::string& path) {
  models::tensor_table table;
  if (!models::safetensors::read_into(table, path).ok()) return false;
  keep(read_all(table));
  return true;
}

inline bool open_pytorch(const std::string& path) {
  models::tensor_table table;
  if (!models::pytorch::read_into(table, path).ok()) return false;
  keep(read_all(table));
  return true;
}

inline bool open_gguf(const std::string& path) {
  auto opened = models::gguf::file::open(path);
  if (!opened.ok()) return false;
  keep(read_all(*opened.value()));
  return true;
}

inline bool open_json(const std::string& path) {
  return models::read_json_file(path, 1 << 26).ok();
}

/// Opens a GGUF file as a model, and uses its configuration, its tokenizer and its chat template.
/// The weights are read by other targets.
inline bool open_model(const std::string& path) {
  auto opened = models::open_model(path);
  if (!opened.ok()) return false;
  const models::model& model = *opened.value();
  use_tokenizer(*model.text);
  if (model.chat != nullptr) use_template(*model.chat, model.text.get());
  for (const models::named_template& other : model.other_chats)
    use_template(*other.chat, model.text.get());
  return true;
}

/// Parses and renders a Jinja chat template.
inline bool open_template(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string source(std::istreambuf_iterator<char>(in), {});
  auto parsed = models::chat_template::parse(source, "<s>", "</s>");
  if (!parsed.ok()) return false;
  use_template(*parsed.value(), nullptr);
  return true;
}

inline bool open_folder(const std::string& path) {
  auto opened = models::folder::open(path);
  if (!opened.ok()) return false;
  keep(read_all(*opened.value()->weights()));
  return true;
}

} // namespace twill::fuzz
