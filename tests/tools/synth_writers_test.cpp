// The writers of random checkpoints: the files that they write are read back as the weights made in
// memory.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/gguf/file.hpp"
#include "models/synth/dummy.hpp"
#include "models/synth/fill.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/small_recipes.hpp"
#include "tools/twill-synth/gguf_plan.hpp"
#include "tools/twill-synth/write.hpp"

namespace fs = std::filesystem;
namespace synth = twill::synth;
using twill::models::checkpoint;
using twill::models::tensor_info;
using twill::test::parsed_recipe;
using twill::test::small_recipes;

namespace {

/// A temporary path that is removed at the end of the test.
class scratch {
public:
  explicit scratch(const std::string& name)
      : path_(fs::temp_directory_path() / ("twill-synth-test-" + name)) {
    fs::remove_all(path_);
  }
  ~scratch() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

private:
  fs::path path_;
};

void write(const std::string& text, const std::string& path, synth::write_options options = {}) {
  const auto written = synth::write_checkpoint(parsed_recipe(text), path, options);
  INFO(text << ": " << (written.ok() ? "" : written.detail()));
  REQUIRE(written.ok());
}

/// Everything that packing would read of one matrix, as bytes.
std::string matrix_bytes(const checkpoint& c, const std::string& name) {
  auto source = c.matrix(name);
  INFO(name << ": " << (source.ok() ? "" : source.detail()));
  REQUIRE(source.ok());
  const auto& m = source.value();
  std::string all = std::to_string(static_cast<int>(m.kind)) + " " + std::to_string(m.group) + " ";
  if (m.column_order)
    for (const auto c : *m.column_order)
      all += std::to_string(c) + ",";
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(m.cols));
  std::vector<float> scales(codes.size()), offsets(codes.size());
  for (std::int64_t r = 0; r < m.rows; ++r) {
    if (m.dense_row) {
      const std::size_t width = m.kind == twill::gpu::weight_kind::f32 ? 4 : 2;
      all.append(static_cast<const char*>(m.dense_row(r)),
                 static_cast<std::size_t>(m.cols) * width);
      continue;
    }
    m.grouped(r, {codes.data(), scales.data(), offsets.data()});
    const auto terms = static_cast<std::size_t>(m.cols / m.group) * sizeof(float);
    all.append(reinterpret_cast<const char*>(codes.data()), codes.size());
    all.append(reinterpret_cast<const char*>(scales.data()), terms);
    all.append(reinterpret_cast<const char*>(offsets.data()), terms);
  }
  return all;
}

/// All that packing reads of one matrix through grouped_panels(), as bytes.
std::string block_bytes(const checkpoint& c, const std::string& name) {
  const auto source = c.matrix(name);
  REQUIRE(source.ok());
  const auto& m = source.value();
  if (!m.grouped_panels) return {};
  const std::int64_t bits = m.kind == twill::gpu::weight_kind::grouped_u4 ? 4 : 8;
  const std::int64_t words = m.cols * bits / 32, groups = m.cols / m.group;
  std::string all;
  for (std::int64_t first = 0; first < m.rows; first += 48) {
    const std::int64_t n = std::min<std::int64_t>(48, m.rows - first);
    std::vector<std::uint32_t> codes(static_cast<std::size_t>((n + 15) / 16 * words * 16));
    std::vector<float> scales(static_cast<std::size_t>(n * groups)), offsets(scales.size());
    m.grouped_panels({first, n, codes.data(), scales.data(), offsets.data()});
    all.append(reinterpret_cast<const char*>(codes.data()), codes.size() * 4);
    all.append(reinterpret_cast<const char*>(scales.data()), scales.size() * 4);
    all.append(reinterpret_cast<const char*>(offsets.data()), offsets.size() * 4);
  }
  return all;
}

void check_equal(const checkpoint& file, const checkpoint& memory) {
  REQUIRE(file.tensors().size() == memory.tensors().size());
  for (const tensor_info& t : file.tensors()) {
    INFO(t.name);
    const tensor_info* other = memory.find(t.name);
    REQUIRE(other != nullptr);
    CHECK(other->shape == t.shape);
    CHECK(other->type == t.type);
    CHECK(other->bytes == t.bytes);
    if (t.shape.size() == 1) {
      CHECK(file.vector(t.name).value() == memory.vector(t.name).value());
    } else {
      CHECK(matrix_bytes(file, t.name) == matrix_bytes(memory, t.name));
      CHECK(block_bytes(file, t.name) == block_bytes(memory, t.name));
    }
  }
}

std::shared_ptr<const twill::models::folder> open(const std::string& path) {
  auto folder = twill::models::folder::open(path);
  INFO((folder.ok() ? "" : folder.detail()));
  REQUIRE(folder.ok());
  return folder.value();
}

} // namespace

TEST_CASE("A folder written for a recipe reads back as the weights made in memory") {
  for (const std::string& text : small_recipes) {
    const scratch at("folder");
    write(text, at.path());
    const auto folder = open(at.path());
    check_equal(*folder->weights(), *synth::make_dummy_weights(parsed_recipe(text)));
  }
}

TEST_CASE("Shards, PyTorch files and single files hold the same tensors") {
  for (const auto format : {synth::file_format::safetensors, synth::file_format::pytorch})
    for (const std::int64_t most : {std::int64_t{100'000}, std::int64_t{1} << 40})
      for (const std::string& text : {small_recipes[3], small_recipes[8]}) {
        const scratch at("shards");
        synth::write_options options;
        options.format = format;
        options.max_shard_bytes = most;
        write(text, at.path(), options);
        const auto files = synth::weight_files(parsed_recipe(text), options);
        REQUIRE(files.ok());
        CHECK((files.value().size() > 1) == (most == 100'000));
        for (const auto& file : files.value())
          CHECK(fs::exists(at.path() + "/" + file.name));
        check_equal(*open(at.path())->weights(), *synth::make_dummy_weights(parsed_recipe(text)));
      }
}

TEST_CASE("What cannot be written leaves nothing behind") {
  const std::string recipe = small_recipes[8];
  SECTION("a folder that is not empty") {
    const scratch at("occupied");
    fs::create_directory(at.path());
    std::ofstream(at.path() + "/mine") << "x";
    CHECK_FALSE(synth::write_checkpoint(parsed_recipe(recipe), at.path(), {}).ok());
    CHECK(fs::exists(at.path() + "/mine"));
  }
  SECTION("a parent that does not exist") {
    const auto done = synth::write_checkpoint(parsed_recipe(recipe), "/nonexistent/folder", {});
    REQUIRE_FALSE(done.ok());
    CHECK(done.detail().find("/nonexistent/folder") != std::string::npos);
  }
  SECTION("more than the disk has") {
    const scratch at("huge");
    const auto done = synth::write_checkpoint(parsed_recipe("opt-175b?layers=1000"), at.path(), {});
    REQUIRE_FALSE(done.ok());
    CHECK(done.detail().find("disk space") != std::string::npos);
    CHECK_FALSE(fs::exists(at.path()));
  }
  SECTION("a run that is stopped") {
    for (const auto format :
         {synth::file_format::safetensors, synth::file_format::pytorch, synth::file_format::gguf}) {
      const scratch at("stopped");
      synth::write_options options;
      options.format = format;
      int calls = 0;
      options.progress = [&](std::int64_t, std::int64_t) { return ++calls < 4; };
      CHECK_FALSE(
          synth::write_checkpoint(parsed_recipe(small_recipes[2]), at.path(), options).ok());
      CHECK_FALSE(fs::exists(at.path()));
    }
  }
}

TEST_CASE("A GGUF file holds the folder's model in every kind") {
  for (const std::string& text :
       {small_recipes[2], small_recipes[6], small_recipes[8] + "&layers=32",
        small_recipes[9] + "&layers=40", small_recipes[12], small_recipes[13], small_recipes[15],
        small_recipes[16]})
    for (const char* kind : {"", "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"}) {
      const std::string name = kind;
      const scratch at("file.gguf");
      synth::write_options options;
      options.format = synth::file_format::gguf;
      options.gguf_kind = kind;
      const auto r = parsed_recipe(
          name.starts_with("Q") ? text + "&hidden=128&heads=4&head-dim=32&mlp=192" : text);
      const auto written = synth::write_checkpoint(r, at.path(), options);
      INFO(text << " " << name << (written.ok() ? "" : written.detail()));
      REQUIRE(written.ok());
      auto file = twill::models::gguf::file::open(at.path());
      INFO((file.ok() ? "" : file.detail()));
      REQUIRE(file.ok());
      const auto tensors = synth::plan_gguf(r);
      CHECK(file.value()->tensors().size() == tensors.size());
      for (const synth::gguf_tensor& t : tensors) {
        const tensor_info* found = file.value()->find(t.name);
        INFO(t.name);
        REQUIRE(found != nullptr);
        CHECK(found->shape.front() == t.n_rows);
        if (t.is_vector())
          CHECK(file.value()->vector(t.name).value() == synth::values_of(t.source, r.seed));
        else
          CHECK(file.value()->matrix(t.name).ok());
      }
      CHECK(file.value()->find("blk.1.attn_norm.weight") != nullptr);
      CHECK(file.value()->find("blk.1.ffn_down.weight") != nullptr);
    }
}

TEST_CASE("GGUF's tensors are all of the folder's but tables of frequencies") {
  for (const std::string& text : {small_recipes[2], small_recipes[8] + "&layers=32",
                                  small_recipes[12], small_recipes[13], small_recipes[16]}) {
    const auto r = parsed_recipe(text);
    std::set<std::string> names;
    std::int64_t values = 0, wanted = 0;
    for (const synth::gguf_tensor& t : synth::plan_gguf(r)) {
      CHECK(names.insert(t.name).second);
      values += t.values();
      std::set<std::int64_t> rows;
      for (std::int64_t row = 0; row < t.n_rows; ++row)
        rows.insert(t.source_row(row));
      CHECK(static_cast<std::int64_t>(rows.size()) == t.n_rows);
      CHECK(*rows.begin() == t.first_row);
      CHECK(*rows.rbegin() == t.first_row + t.n_rows - 1);
    }
    for (const synth::planned_tensor& t : synth::plan_tensors(r))
      if (t.kind != synth::content::frequencies) wanted += t.rows() * t.row_values();
    CHECK(values == wanted);
  }
}

TEST_CASE("GGUF's 4- and 8-bit kinds stay within half a step of the values") {
  const scratch at("kinds.gguf");
  const auto r = parsed_recipe(small_recipes[2]);
  const auto tensors = synth::plan_tensors(r);
  const auto& up = *std::find_if(tensors.begin(), tensors.end(), [](const auto& t) {
    return t.name == "model.layers.0.mlp.up_proj.weight";
  });
  const auto exact = synth::values_of(up, r.seed);
  for (const char* kind : {"Q8_0", "Q4_0", "Q4_1"}) {
    fs::remove(at.path());
    synth::write_options options;
    options.format = synth::file_format::gguf;
    options.gguf_kind = kind;
    REQUIRE(synth::write_checkpoint(r, at.path(), options).ok());
    const auto file = twill::models::gguf::file::open(at.path()).value();
    const auto m = file->matrix("blk.0.ffn_up.weight").value();
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(m.cols));
    std::vector<float> scales(codes.size()), offsets(codes.size());
    for (std::int64_t row = 0; row < m.rows; ++row) {
      m.grouped(row, {codes.data(), scales.data(), offsets.data()});
      for (std::size_t c = 0; c < codes.size(); ++c) {
        const float scale = scales[c / 32];
        const float made = scale * codes[c] + offsets[c / 32];
        const float error = made - exact[static_cast<std::size_t>(row * m.cols) + c];
        // Q4_0 has one code less above than below.
        REQUIRE(std::abs(error) <=
                std::abs(scale) * (kind[3] == '0' && kind[1] == '4' ? 1.02 : 0.55));
      }
    }
  }
}

TEST_CASE("GGUF refuses families, packings and shapes that it has no place for") {
  const std::map<std::string, std::string> wrong = {
      {small_recipes[0], "not for opt: llama.cpp"},
      {small_recipes[3], "no GPTQ or AWQ"},
      {small_recipes[8],
       "`layers` must be 32 in a GGUF file of baichuan with rotary positions, got 2"},
      {small_recipes[9], "`layers` must be 40 in a GGUF file of baichuan with ALiBi, got 2"},
      {small_recipes[12] + "&head-dim=64", "`head-dim` must be hidden / heads"},
      {small_recipes[13] + "&head-dim=64",
       "`head-dim` must be hidden / heads in a GGUF file of qwen"},
      {small_recipes[15] + "&hidden=112", "`token_embd.weight`: rows must be a multiple of 32"}};
  for (const auto& [text, words] : wrong) {
    synth::write_options options;
    options.format = synth::file_format::gguf;
    if (text.starts_with("qwen2")) options.gguf_kind = "Q4_0";
    const auto done = synth::write_checkpoint(parsed_recipe(text), "/tmp/never.gguf", options);
    REQUIRE_FALSE(done.ok());
    INFO(done.detail());
    CHECK(done.detail().find(words) != std::string::npos);
    CHECK_FALSE(fs::exists("/tmp/never.gguf"));
  }
}
