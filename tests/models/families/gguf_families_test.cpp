// GGUF files of Qwen v1, ChatGLM3 and Baichuan2 give the same models as their folders. Also: which
// GGUF files are refused.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/decoder/check_weights.hpp"
#include "models/families/registry.hpp"
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/support/worse.hpp"
#include "tools/twill-synth/write.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;

namespace {

const std::string qwen =
    "qwen-7b?hidden=96&layers=3&heads=3&mlp=128&vocab=768&context=64&dtype=f32";
const std::string chatglm =
    "chatglm3-6b?hidden=96&layers=3&heads=3&kv-heads=1&mlp=128&vocab=720&context=64&dtype=f32";
const std::string long_chatglm =
    "chatglm3-6b-32k?hidden=128&layers=2&heads=4&kv-heads=2&mlp=96&vocab=720&dtype=f32";
const std::string baichuan_7b =
    "baichuan2-7b?hidden=64&layers=32&heads=2&mlp=96&vocab=864&context=64&dtype=f32";
const std::string baichuan_13b =
    "baichuan2-13b?hidden=96&layers=40&heads=3&mlp=96&vocab=864&context=64&dtype=f32";

void write(const std::string& recipe, const std::string& path, twill::synth::file_format format) {
  auto r = twill::synth::parse_recipe(recipe);
  INFO(recipe << (r.ok() ? "" : r.detail()));
  REQUIRE(r.ok());
  twill::synth::write_options options;
  options.format = format;
  auto written = twill::synth::write_checkpoint(r.value(), path, options);
  INFO((written.ok() ? "" : written.detail()));
  REQUIRE(written.ok());
}

std::shared_ptr<const model> opened(const std::string& path) {
  auto m = open_model(path);
  INFO((m.ok() ? "" : m.detail()));
  REQUIRE(m.ok());
  return m.value();
}

/// The model of one recipe, opened as a folder and as a GGUF file.
struct both {
  temp_folder at;
  std::shared_ptr<const model> folder, file;

  explicit both(const std::string& recipe) {
    write(recipe, at.file("folder"), twill::synth::file_format::safetensors);
    write(recipe, at.file("model.gguf"), twill::synth::file_format::gguf);
    folder = opened(at.file("folder"));
    file = opened(at.file("model.gguf"));
  }
};

/// Logits after each of `prompt`'s tokens and of eight greedy ones.
std::vector<logit_row> run(const model& m, const id_list& prompt) {
  decoder_runner runner(m.spec, *m.weights, golden_options());
  std::vector<logit_row> rows = runner.step({{0, prompt, true}});
  for (int i = 0; i < 8; ++i)
    rows.push_back(runner.step({{0, {argmax(rows.back())}}}).front());
  return rows;
}

/// The GGUF file of a recipe, whose metadata a test can change.
struct changeable {
  temp_folder at;
  std::shared_ptr<const gguf::file> file;

  explicit changeable(const std::string& recipe) {
    write(recipe, at.file("model.gguf"), twill::synth::file_format::gguf);
    file = gguf::file::open(at.file("model.gguf")).value();
  }
  twill::result<model_spec, errc> spec(const std::string& key, gguf::metadata::entry value) const {
    gguf::metadata meta = file->meta();
    REQUIRE(meta.has(key));
    meta.entries[key] = std::move(value);
    return families::gguf_spec_of(meta, *file);
  }
  void refuses(errc code, const std::string& key, const std::string& words,
               gguf::metadata::entry value) const {
    const auto parsed = spec(key, std::move(value));
    REQUIRE_FALSE(parsed.ok());
    CAPTURE(parsed.detail());
    CHECK(parsed.code() == code);
    CHECK(parsed.detail().find(words) != std::string::npos);
  }
};

} // namespace

TEST_CASE("a GGUF file computes what the folder of the same recipe computes") {
  std::mt19937 random(5);
  for (const std::string& recipe : {qwen, chatglm, long_chatglm, baichuan_7b, baichuan_13b}) {
    CAPTURE(recipe);
    const both models(recipe);
    for (const int length : {1, 23}) {
      id_list prompt;
      for (int i = 0; i < length; ++i)
        prompt.push_back(static_cast<std::int32_t>(random() % 700));
      const auto folder_logits = run(*models.folder, prompt),
                 file_logits = run(*models.file, prompt);
      REQUIRE(file_logits.size() == folder_logits.size());
      double worst = 0;
      for (std::size_t i = 0; i < folder_logits.size(); ++i) {
        CHECK(argmax(file_logits[i]) == argmax(folder_logits[i]));
        for (std::size_t j = 0; j < folder_logits[i].size(); ++j)
          worst = twill::test::worse(worst, std::abs(file_logits[i][j] - folder_logits[i][j]));
      }
      CHECK(worst < 1e-4);
    }
  }
}

TEST_CASE("a GGUF file's tokenizer and chats give the ids of the folder's") {
  const twill::value chat = twill::value_list{
      twill::value_object{{"role", "user"}, {"content", "the sop of <|user|> philosophy"}},
      twill::value_object{{"role", "assistant"}, {"content", "Grüße, 42 times"}},
      twill::value_object{{"role", "user"}, {"content", " and\nnow?"}}};
  for (const std::string& recipe : {qwen, chatglm, baichuan_13b}) {
    CAPTURE(recipe);
    const both models(recipe);
    const tokenizer &ours = *models.file->text, &theirs = *models.folder->text;
    for (const char* text : {"", "the ratio of one to another", "  two\n\tspaces 你好 🌍 sop"})
      CHECK(ours.encode(text, {.parse_special = true}).value() ==
            theirs.encode(text, {.parse_special = true}).value());
    auto ends = ours.end_ids(), wanted_ends = theirs.end_ids();
    std::sort(ends.begin(), ends.end());
    std::sort(wanted_ends.begin(), wanted_ends.end());
    CHECK(ends == wanted_ends);

    REQUIRE(models.file->chat != nullptr);
    template_input input;
    input.messages = chat;
    input.add_generation_prompt = true;
    const auto prompt = models.file->chat->render(input).value();
    const auto wanted = models.folder->chat->render(input).value();
    const auto ids = ours.encode_prompt(prompt.text, prompt.literal).value();
    CHECK(ids == theirs.encode_prompt(wanted.text, wanted.literal).value());
    CHECK(ids.size() > 20);
  }
}

TEST_CASE("Qwen v1's GGUF metadata becomes a spec without the scaling that it lacks") {
  const changeable c(qwen);
  const auto spec = families::gguf_spec_of(c.file->meta(), *c.file).value();
  CHECK(spec.family == "qwen");
  CHECK(spec.mlp_size == 128); // half of the 256 in the file
  CHECK(spec.qkv_bias == bias_rule::required);
  CHECK(spec.rope.kind == gpu::rope_kind::half_split);
  CHECK(spec.rope.growth == rope_growth::none);
  CHECK(spec.log_n_length == 0);
  CHECK_FALSE(spec.tied_head);
  CHECK(check_weights(spec, *c.file).empty());

  using std::int64_t;
  c.refuses(errc::unsupported, "general.architecture",
            "must be one of llama, qwen, qwen2, qwen3, chatglm, baichuan; got \"gpt2\"",
            std::string("gpt2"));
  c.refuses(errc::bad_metadata, "qwen.feed_forward_length",
            "`qwen.feed_forward_length` must be even and above 0, got 255", int64_t{255});
  c.refuses(errc::bad_metadata, "qwen.block_count", "qwen.block_count", int64_t{0});
  c.refuses(errc::bad_metadata, "qwen.rope.dimension_count", "at most the head size, got 33 and 32",
            int64_t{33});
  c.refuses(errc::bad_metadata, "qwen.attention.layer_norm_rms_epsilon", "norm_epsilon must be",
            2.0);
}

TEST_CASE("ChatGLM3's GGUF metadata becomes a spec that rotates half of each head") {
  const changeable c(long_chatglm);
  const auto spec = families::gguf_spec_of(c.file->meta(), *c.file).value();
  CHECK(spec.family == "chatglm");
  CHECK(spec.rope.kind == gpu::rope_kind::interleaved);
  CHECK(spec.head_dim == 32);
  CHECK(spec.rope.rotary_dim == 16);
  CHECK(spec.rope.inv_freq[4] == Approx(std::pow(500000, -0.5)));
  CHECK(spec.mlp_size == 96);
  CHECK(check_weights(spec, *c.file).empty());

  using std::int64_t;
  c.refuses(errc::bad_metadata, "chatglm.rope.dimension_count", "rotary_dim must be even",
            int64_t{15});
  c.refuses(errc::bad_metadata, "chatglm.rope.freq_base", "must be above 0, got 0.000000", 0.0);
  c.refuses(errc::bad_metadata, "chatglm.attention.head_count_kv",
            "n_heads must be a multiple of n_kv_heads, got 4 and 3", int64_t{3});
  c.refuses(errc::unsupported, "chatglm.attention.value_length",
            "`chatglm.attention.value_length` must equal the key length 32, got 16", int64_t{16});
  // Numbers that fit each other but not the tensors are refused by the tensor's name.
  const auto wide = c.spec("chatglm.feed_forward_length", int64_t{192}).value();
  REQUIRE_FALSE(check_weights(wide, *c.file).empty());
  CHECK(check_weights(wide, *c.file).front().detail.find("ffn_up.weight` must have shape") !=
        std::string::npos);
}

TEST_CASE("Baichuan2's GGUF metadata implies positions by the number of layers") {
  const changeable rotary(baichuan_7b), alibi(baichuan_13b);
  const auto small = families::gguf_spec_of(rotary.file->meta(), *rotary.file).value();
  CHECK(small.family == "baichuan");
  CHECK(small.rope.kind == gpu::rope_kind::interleaved);
  CHECK(small.alibi_slopes.empty());
  CHECK_FALSE(small.normalised_head);
  CHECK(check_weights(small, *rotary.file).empty());
  const auto large = families::gguf_spec_of(alibi.file->meta(), *alibi.file).value();
  CHECK(large.rope.kind == gpu::rope_kind::none);
  CHECK(large.rope.inv_freq.empty());
  CHECK(large.alibi_slopes.size() == 3);
  CHECK(check_weights(large, *alibi.file).empty());

  using std::int64_t;
  alibi.refuses(errc::unsupported, "baichuan.block_count",
                "`baichuan.block_count` must be 32 (7B, rotary) or 40 (13B, ALiBi)", int64_t{8});
  alibi.refuses(errc::bad_metadata, "baichuan.attention.head_count", "n_heads must be in 1..4096",
                int64_t{2147483647});
}

TEST_CASE("a head that is missing is Baichuan's and Qwen's error, and ChatGLM's embedding") {
  for (const std::string& recipe : {qwen, chatglm, baichuan_13b}) {
    CAPTURE(recipe);
    const changeable c(recipe);
    struct headless final : checkpoint {
      explicit headless(const checkpoint& c) : all(c) {}
      std::vector<tensor_info> tensors() const override {
        auto list = all.tensors();
        std::erase_if(list, [](const tensor_info& t) { return t.name == "output.weight"; });
        return list;
      }
      const tensor_info* find(std::string_view name) const override {
        return name == "output.weight" ? nullptr : all.find(name);
      }
      twill::result<gpu::weight_source, errc> matrix(std::string_view name) const override {
        return all.matrix(name);
      }
      twill::result<std::vector<float>, errc> vector(std::string_view name) const override {
        return all.vector(name);
      }
      const checkpoint& all;
    };
    const headless weights(*c.file);
    const auto spec = families::gguf_spec_of(c.file->meta(), weights).value();
    const auto found = check_weights(spec, weights);
    CHECK(spec.tied_head == (recipe == chatglm));
    CHECK(found.empty() == (recipe == chatglm));
    if (!found.empty()) CHECK(found.front().code == errc::missing_tensor);
  }
}

TEST_CASE("any number in the metadata ends in an error or a bounded spec", "[fuzz]") {
  const std::int64_t numbers[] = {-1,
                                  0,
                                  1,
                                  2,
                                  3,
                                  31,
                                  33,
                                  4097,
                                  65536,
                                  1 << 24,
                                  2147483647,
                                  std::int64_t{1} << 31,
                                  std::numeric_limits<std::int64_t>::max()};
  for (const std::string& recipe : {qwen, chatglm, baichuan_7b, baichuan_13b}) {
    const changeable c(recipe);
    int n_keys = 0;
    for (const auto& [key, entry] : c.file->meta().entries) {
      if (key.starts_with("general.") || key.starts_with("tokenizer.")) continue;
      ++n_keys;
      for (const std::int64_t n : numbers) {
        CAPTURE(recipe, key, n);
        const auto parsed = c.spec(key, n);
        if (!parsed.ok()) {
          CHECK_FALSE(parsed.detail().empty());
          continue;
        }
        CHECK(parsed.value().rope.inv_freq.size() <= 2048);
        CHECK(parsed.value().alibi_slopes.size() <= 4096);
        for (const auto& found : check_weights(parsed.value(), *c.file))
          CHECK_FALSE(found.detail.empty());
      }
    }
    CHECK(n_keys >= 11);
  }
}
