#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/synth/dummy.hpp"
#include "models/synth/fill.hpp"
#include "models/synth/vocabulary.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/small_recipes.hpp"

namespace fs = std::filesystem;
namespace synth = twill::models::synth;
using twill::test::parsed_recipe;
using twill::test::small_recipes;

TEST_CASE("Any rows of a tensor are the same bytes, whoever asks for them") {
  for (const std::string& text : {small_recipes[0], small_recipes[3], small_recipes[10],
                                  small_recipes[11], small_recipes[12]}) {
    const synth::recipe r = parsed_recipe(text);
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
  const auto r =
      parsed_recipe("mistral-7b?layers=1&hidden=512&heads=4&kv-heads=4&mlp=512&vocab=720");
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
    const auto weights = synth::make_dummy_weights(parsed_recipe(text));
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
    const auto r = parsed_recipe(preset.preset);
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
  for (const std::string& text : small_recipes)
    for (const int vocab : {512, 1000, 5003, 152064}) {
      const auto r = parsed_recipe(text + "&vocab=" + std::to_string(vocab));
      const synth::vocabulary v = synth::make_vocabulary(r);
      CHECK(static_cast<int>(v.pieces.size()) <= vocab);
      CHECK(v.n_base <= static_cast<int>(v.pieces.size()));
      std::map<std::string, std::size_t> ids;
      for (std::size_t i = 0; i < v.pieces.size(); ++i)
        if (v.pieces[i].type == synth::piece_type::normal)
          REQUIRE(ids.emplace(v.pieces[i].text, i).second);
      for (const auto& [left, right] : v.merges) {
        const auto joined = ids.find(left + right);
        REQUIRE(joined != ids.end());
        REQUIRE(ids.at(left) < joined->second);
        REQUIRE(ids.at(right) < joined->second);
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
      {"opt-125m?step-us=5", "`step-us` is not for opt"},
      {"opt-125m?fault-every=5", "`fault-every` is not for opt"},
      {"null?step-us=20000000", "at most 10000000"},
      {"null?fault-every=-1", "at least 0"},
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

TEST_CASE("A dummy model opens with a tokenizer that encodes any text and decodes every id") {
  const std::string prose = "the ratio of one to another, 42 times: Grüße 你好 🌍\n\tdone";
  std::vector<std::string> paths = small_recipes;
  for (const char* preset : {"opt-125m", "mistral-7b-awq", "chatglm3-6b", "baichuan2-13b-gptq",
                             "qwen-14b", "llama3-8b", "qwen2-7b", "smollm2-135m"})
    paths.emplace_back(preset);
  for (const std::string& path : paths) {
    auto opened = synth::open_dummy("dummy:" + path);
    INFO(path << ": " << (opened.ok() ? "" : opened.detail()));
    REQUIRE(opened.ok());
    const auto& model = opened.value();
    const auto& text = *model.text;
    CHECK(text.vocab_size() <= parsed_recipe(path).vocab_size);
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
