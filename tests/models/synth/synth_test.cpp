#include <cmath>
#include <cstring>
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
#include "models/synth/gguf_plan.hpp"
#include "models/synth/random.hpp"
#include "models/synth/vocabulary.hpp"
#include "models/synth/write.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;
namespace synth = twill::models::synth;
using twill::models::checkpoint;
using twill::models::tensor_info;

namespace {

/// A path of this test that is gone afterwards.
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

/// Small models of every family and packing.
const std::vector<std::string> small = {
    "opt-125m?layers=2&hidden=96&heads=3&mlp=160&vocab=704&context=64&dtype=f32",
    "opt-350m?layers=2&hidden=96&heads=3&mlp=160&vocab=704&context=64&embed=48",
    "mistral-7b?layers=2&hidden=128&heads=4&kv-heads=2&mlp=192&vocab=720&window=24",
    "mistral-7b-awq?layers=2&hidden=128&heads=4&kv-heads=2&mlp=256&vocab=736&group=64",
    "llama2-7b?layers=2&hidden=128&heads=4&mlp=192&vocab=720&bias=true",
    "llama3-8b?layers=2&hidden=128&heads=4&kv-heads=2&mlp=192&vocab=1005",
    "smollm2-135m?layers=2&hidden=96&heads=3&kv-heads=1&mlp=192&vocab=800",
    "llama2-7b?layers=2&hidden=128&heads=4&mlp=256&vocab=720&quant=gptq-4&group=32",
    "baichuan2-7b?layers=2&hidden=128&heads=4&mlp=192&vocab=864",
    "baichuan2-13b?layers=2&hidden=96&heads=3&mlp=256&vocab=864&dtype=f32",
    "baichuan2-13b-gptq?layers=2&hidden=128&heads=4&mlp=256&vocab=864&group=32&act-order=true&sym="
    "false",
    "baichuan2-13b-gptq?layers=2&hidden=128&heads=4&mlp=256&vocab=864&quant=gptq-8&group=-1",
    "chatglm3-6b-32k?layers=2&hidden=128&heads=4&kv-heads=2&mlp=192&vocab=768",
    "qwen-14b?layers=2&hidden=128&heads=4&mlp=192&vocab=768",
    "qwen-7b?layers=2&hidden=128&heads=4&mlp=256&vocab=768&quant=gptq-4&group=64",
    "qwen2-0.5b?layers=2&hidden=112&heads=7&kv-heads=1&mlp=192&vocab=600",
    "qwen3-0.6b?layers=2&hidden=128&heads=4&kv-heads=2&head-dim=48&mlp=192&vocab=600",
};

synth::recipe parsed(const std::string& text) {
  auto r = synth::parse_recipe(text);
  INFO(text << ": " << (r.ok() ? "" : r.detail()));
  REQUIRE(r.ok());
  return r.value();
}

void write(const std::string& text, const std::string& path, synth::write_options options = {}) {
  const auto written = synth::write_checkpoint(parsed(text), path, options);
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

/// The same through grouped_panels, words and terms as they come.
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
  for (const std::string& text : small) {
    const scratch at("folder");
    write(text, at.path());
    const auto folder = open(at.path());
    check_equal(*folder->weights(), *synth::make_dummy_weights(parsed(text)));
  }
}

TEST_CASE("Shards, PyTorch files and single files hold the same tensors") {
  for (const auto format : {synth::file_format::safetensors, synth::file_format::pytorch})
    for (const std::int64_t most : {std::int64_t{100'000}, std::int64_t{1} << 40})
      for (const std::string& text : {small[3], small[8]}) {
        const scratch at("shards");
        synth::write_options options;
        options.format = format;
        options.max_shard_bytes = most;
        write(text, at.path(), options);
        const auto files = synth::weight_files(parsed(text), options);
        REQUIRE(files.ok());
        CHECK((files.value().size() > 1) == (most == 100'000));
        for (const auto& file : files.value())
          CHECK(fs::exists(at.path() + "/" + file.name));
        check_equal(*open(at.path())->weights(), *synth::make_dummy_weights(parsed(text)));
      }
}

TEST_CASE("Any rows of a tensor are the same bytes, whoever asks for them") {
  for (const std::string& text : {small[0], small[3], small[10], small[11], small[12]}) {
    const synth::recipe r = parsed(text);
    for (const synth::planned_tensor& t : synth::plan_tensors(r)) {
      INFO(t.name);
      const synth::tensor_filler filler(t, r.seed);
      const auto row = static_cast<std::size_t>(t.row_bytes());
      std::vector<std::byte> whole(static_cast<std::size_t>(t.bytes())), part(3 * row);
      filler.fill(0, t.rows(), whole.data());
      for (std::int64_t first = 0; first + 3 <= t.rows(); first += 5) {
        filler.fill(first, 3, part.data());
        REQUIRE(std::memcmp(part.data(), whole.data() + static_cast<std::size_t>(first) * row,
                            part.size()) == 0);
      }
    }
  }
}

TEST_CASE("Weights are normal, of the planned deviation, and differ by seed and name") {
  const auto r = parsed("mistral-7b?layers=1&hidden=512&heads=4&kv-heads=4&mlp=512&vocab=720");
  const auto tensors = synth::plan_tensors(r);
  std::set<float> firsts;
  for (const synth::planned_tensor& t : tensors) {
    INFO(t.name);
    const auto values = synth::values_of(t, r.seed);
    double sum = 0, squares = 0;
    for (const float x : values) {
      REQUIRE(std::isfinite(x));
      sum += x;
      squares += (x - t.mean) * (x - t.mean);
    }
    const auto n = static_cast<double>(values.size());
    CHECK(std::abs(sum / n - t.mean) < 5 * t.deviation / std::sqrt(n));
    CHECK(std::sqrt(squares / n) == Approx(t.deviation).epsilon(0.12));
    CHECK(values != synth::values_of(t, r.seed + 1));
    if (t.shape.size() > 1) firsts.insert(values.front());
  }
  CHECK(firsts.size() > 5);
}

TEST_CASE("Packed weights have no mean and the deviation of dense ones") {
  for (const std::string& text :
       {std::string("mistral-7b-awq?layers=1&hidden=512&heads=4&kv-heads=4&mlp=512&vocab=720"),
        std::string("baichuan2-13b-gptq?layers=1&hidden=512&heads=4&mlp=512&vocab=864&sym=false"),
        std::string("llama2-7b?layers=1&hidden=512&heads=4&mlp=512&vocab=864&quant=gptq-8")}) {
    const auto weights = synth::make_dummy_weights(parsed(text));
    const auto m = weights->matrix("model.layers.0.mlp.up_proj.weight").value();
    std::vector<std::uint8_t> codes(512);
    std::vector<float> scales(4), offsets(4);
    double sum = 0, squares = 0;
    for (std::int64_t r = 0; r < m.rows; ++r) {
      m.grouped(r, {codes.data(), scales.data(), offsets.data()});
      for (std::size_t c = 0; c < codes.size(); ++c) {
        const double x = scales[c / 128] * codes[c] + offsets[c / 128];
        sum += x;
        squares += x * x;
      }
    }
    const double n = 512.0 * 512.0, deviation = 1 / std::sqrt(512.0);
    CHECK(std::sqrt(squares / n) == Approx(deviation).epsilon(0.1));
    CHECK(std::abs(sum / n) < 0.03 * deviation);
  }
}

TEST_CASE("Every preset is valid and has the published number of parameters") {
  const std::map<std::string, double> billions = {
      {"opt-125m", 0.125},     {"opt-350m", 0.331},     {"opt-1.3b", 1.316},
      {"opt-30b", 29.97},      {"opt-175b", 174.6},     {"mistral-7b", 7.242},
      {"baichuan2-13b", 13.9}, {"baichuan2-7b", 7.506}, {"qwen-14b", 14.17},
      {"chatglm3-6b", 6.244},  {"llama2-7b", 6.738},    {"llama3-8b", 8.030},
      {"qwen-7b", 7.721},      {"qwen2-0.5b", 0.494},   {"qwen3-0.6b", 0.596},
      {"qwen2-7b", 7.616},     {"qwen3-8b", 8.191},     {"smollm2-135m", 0.1345}};
  for (const synth::recipe& preset : synth::presets()) {
    const auto r = parsed(preset.preset);
    const auto known = billions.find(preset.preset);
    if (known == billions.end()) continue;
    std::int64_t n = 0;
    for (const auto& t : synth::plan_tensors(r))
      n += t.rows() * t.row_values();
    INFO(preset.preset << " " << n);
    CHECK(static_cast<double>(n) / 1e9 == Approx(known->second).epsilon(0.005));
  }
}

TEST_CASE("Vocabularies of any size have distinct pieces and merges of pieces before them") {
  for (const std::string& text : small)
    for (const int vocab : {512, 1000, 5003, 152064}) {
      const auto r = parsed(text + "&vocab=" + std::to_string(vocab));
      const synth::vocabulary v = synth::make_vocabulary(r);
      CHECK(static_cast<int>(v.pieces.size()) <= vocab);
      CHECK(v.n_base <= static_cast<int>(v.pieces.size()));
      std::map<std::string, std::size_t> ids;
      for (std::size_t i = 0; i < v.pieces.size(); ++i)
        if (v.pieces[i].type == synth::piece_type::normal)
          REQUIRE(ids.emplace(v.pieces[i].text, i).second);
      for (const auto& [left, right] : v.merges) {
        const auto made = ids.find(left + right);
        REQUIRE(made != ids.end());
        REQUIRE(ids.at(left) < made->second);
        REQUIRE(ids.at(right) < made->second);
      }
    }
}

TEST_CASE("Wrong presets and options are named") {
  const std::map<std::string, std::string> wrong = {
      {"opt-1b", "opt-1.3b"},
      {"opt-125m?layer=2", "layers"},
      {"opt-125m?layers=0", "at least 1"},
      {"opt-125m?layers", "name=value"},
      {"opt-125m?heads=5", "multiple of the 5 heads"},
      {"opt-125m?alibi=true", "not for opt"},
      {"qwen-7b?theta=20000", "`theta` is not for qwen"},
      {"opt-125m?vocab=9000000", "at most"},
      {"opt-125m?dtype=f8", "f32, f16 or bf16"},
      {"baichuan2-13b?hidden=4096&heads=32", "ALiBi"},
      {"mistral-7b-awq?group=48", "group"},
      {"mistral-7b-awq?seed=x", "integer"},
  };
  for (const auto& [text, part] : wrong) {
    const auto r = synth::parse_recipe(text);
    INFO(text);
    REQUIRE_FALSE(r.ok());
    CHECK(r.detail().find(part) != std::string::npos);
  }
  CHECK(synth::is_dummy("dummy:opt-125m"));
  CHECK_FALSE(synth::is_dummy("/models/dummy:opt-125m"));
}

TEST_CASE("What cannot be written leaves nothing behind") {
  const std::string recipe = small[8];
  SECTION("a folder that is not empty") {
    const scratch at("occupied");
    fs::create_directory(at.path());
    std::ofstream(at.path() + "/mine") << "x";
    CHECK_FALSE(synth::write_checkpoint(parsed(recipe), at.path(), {}).ok());
    CHECK(fs::exists(at.path() + "/mine"));
  }
  SECTION("a parent that does not exist") {
    const auto done = synth::write_checkpoint(parsed(recipe), "/nonexistent/folder", {});
    REQUIRE_FALSE(done.ok());
    CHECK(done.detail().find("/nonexistent/folder") != std::string::npos);
  }
  SECTION("more than the disk has") {
    const scratch at("huge");
    const auto done = synth::write_checkpoint(parsed("opt-175b?layers=1000"), at.path(), {});
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
      CHECK_FALSE(synth::write_checkpoint(parsed(small[2]), at.path(), options).ok());
      CHECK_FALSE(fs::exists(at.path()));
    }
  }
}

TEST_CASE("A GGUF file holds the folder's model in every kind") {
  for (const std::string& text :
       {small[2], small[6], small[8] + "&layers=32", small[9] + "&layers=40", small[12], small[13],
        small[15], small[16]})
    for (const char* kind : {"", "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"}) {
      const std::string name = kind;
      const scratch at("file.gguf");
      synth::write_options options;
      options.format = synth::file_format::gguf;
      options.gguf_kind = kind;
      const auto r =
          parsed(name.starts_with("Q") ? text + "&hidden=128&heads=4&head-dim=32&mlp=192" : text);
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
  for (const std::string& text :
       {small[2], small[8] + "&layers=32", small[12], small[13], small[16]}) {
    const auto r = parsed(text);
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
  const auto r = parsed(small[2]);
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

TEST_CASE("A dummy model opens with a tokenizer that encodes any text and decodes every id") {
  const std::string prose = "the ratio of one to another, 42 times: Grüße 你好 🌍\n\tdone";
  std::vector<std::string> paths = small;
  for (const char* preset : {"opt-125m", "mistral-7b-awq", "chatglm3-6b", "baichuan2-13b-gptq",
                             "qwen-14b", "llama3-8b", "qwen2-7b", "smollm2-135m"})
    paths.emplace_back(preset);
  for (const std::string& path : paths) {
    auto opened = synth::open_dummy("dummy:" + path);
    INFO(path << ": " << (opened.ok() ? "" : opened.detail()));
    REQUIRE(opened.ok());
    const auto& model = opened.value();
    const auto& text = *model.text;
    CHECK(text.vocab_size() <= parsed(path).vocab_size);
    CHECK_FALSE(text.end_ids().empty());
    const auto ids = text.encode(prose, {});
    REQUIRE(ids.ok());
    CHECK(text.decode(ids.value(), false) == prose);
    CHECK(ids.value().size() < prose.size());
    for (std::int32_t id = 0; id < text.vocab_size(); ++id)
      REQUIRE_FALSE((text.token_bytes(id, true).empty() && !text.is_special(id)));
  }
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path()))
    CHECK(entry.path().filename().string().find("twill-dummy-") != 0);
}

TEST_CASE("GGUF refuses families, packings and shapes that it has no place for") {
  const std::map<std::string, std::string> wrong = {
      {small[0], "not for opt: llama.cpp"},
      {small[3], "no GPTQ or AWQ"},
      {small[8], "`layers` must be 32 in a GGUF file of baichuan with rotary positions, got 2"},
      {small[9], "`layers` must be 40 in a GGUF file of baichuan with ALiBi, got 2"},
      {small[12] + "&head-dim=64", "`head-dim` must be hidden / heads"},
      {small[13] + "&head-dim=64", "`head-dim` must be hidden / heads in a GGUF file of qwen"},
      {small[15] + "&hidden=112", "`token_embd.weight`: rows must be a multiple of 32"}};
  for (const auto& [text, words] : wrong) {
    synth::write_options options;
    options.format = synth::file_format::gguf;
    if (text.starts_with("qwen2")) options.gguf_kind = "Q4_0";
    const auto done = synth::write_checkpoint(parsed(text), "/tmp/never.gguf", options);
    REQUIRE_FALSE(done.ok());
    INFO(done.detail());
    CHECK(done.detail().find(words) != std::string::npos);
    CHECK_FALSE(fs::exists("/tmp/never.gguf"));
  }
}
