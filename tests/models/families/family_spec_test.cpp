// How families read a config.json: which numbers they take, and which variants they refuse. The
// message of a refusal names the key, the rule and the value.
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/json.hpp"
#include "models/decoder/frequencies.hpp"
#include "models/families/alibi.hpp"
#include "models/families/registry.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
using twill::value;
using twill::value_object;

namespace {

/// A golden folder's config with changes: a null value removes the key.
class changed_folder {
public:
  explicit changed_folder(const std::string& name) {
    auto opened = folder::open(twill::test::golden_dir() + "/" + name);
    REQUIRE(opened.ok());
    weights_ = opened.value()->weights();
    members_ = *opened.value()->config().as_object();
  }
  changed_folder& set(const std::string& key, const std::string& json) {
    std::erase_if(members_, [&](const auto& m) { return m.first == key; });
    if (json != "absent") members_.emplace_back(key, parse_json(json, "test").value());
    return *this;
  }
  result<model_spec> spec() const { return families::spec_of(value(members_), *weights_); }

private:
  std::shared_ptr<const checkpoint> weights_;
  value_object members_;
};

void check_refused(const changed_folder& f, errc code, const std::string& words) {
  const auto spec = f.spec();
  REQUIRE_FALSE(spec.ok());
  CAPTURE(spec.detail());
  CHECK(spec.code() == code);
  CHECK(spec.detail().find(words) != std::string::npos);
}

} // namespace

TEST_CASE("a config that contradicts itself is refused with key, rule and value") {
  const auto llama = [] { return changed_folder("llama-tiny-fp16"); };
  check_refused(llama().set("hidden_size", "absent"), errc::missing_metadata,
                "config.json: `hidden_size` is missing");
  check_refused(llama().set("hidden_size", "\"big\""), errc::bad_metadata,
                "`hidden_size` must be an integer of at least 1, got \"big\"");
  check_refused(llama().set("num_attention_heads", "0"), errc::bad_metadata,
                "`num_attention_heads` must be an integer of at least 1, got 0");
  check_refused(llama().set("num_key_value_heads", "3"), errc::bad_metadata,
                "n_heads must be a multiple of n_kv_heads, got 4 and 3");
  check_refused(llama().set("hidden_act", "\"mish\""), errc::unsupported, "got \"mish\"");
  check_refused(llama().set("hidden_act", "\"gelu\""), errc::unsupported, "activated by silu");
  check_refused(llama().set("rms_norm_eps", "\"x\""), errc::bad_metadata, "finite number");
  check_refused(llama().set("vocab_size", "721"), errc::bad_metadata,
                "`vocab_size` must be at most the embedding's rows (720), got 721");
  check_refused(llama().set("rope_scaling", "7"), errc::bad_metadata, "must be an object, got 7");
  check_refused(llama().set("rope_scaling", R"({"type": "longrope", "factor": 2})"),
                errc::unsupported, "got \"longrope\"");
  check_refused(llama().set("rope_scaling", R"({"type": "linear", "factor": 0.5})"),
                errc::bad_metadata, "`factor` must be at least 1");
  check_refused(llama().set("architectures", R"(["MixtralForCausalLM"])"), errc::unsupported,
                "got \"MixtralForCausalLM\"");
  check_refused(llama().set("architectures", "absent").set("model_type", "\"gpt2\""),
                errc::unsupported, "`model_type` \"gpt2\"");
  check_refused(changed_folder("qwen-v1-tiny-fp32").set("intermediate_size", "255"),
                errc::bad_metadata, "`intermediate_size` must be even, got 255");
  check_refused(changed_folder("chatglm3-tiny-fp16").set("original_rope", "false"),
                errc::unsupported, "`original_rope` must be true");
}

TEST_CASE("every architecture name that checkpoints carry is known") {
  const std::pair<const char*, std::vector<std::string>> folders[] = {
      {"llama-tiny-fp16", {"LlamaForCausalLM", "LLaMAForCausalLM"}},
      {"mistral-tiny-bf16", {"MistralForCausalLM"}},
      {"opt-tiny-fp32", {"OPTForCausalLM", "OPTModel"}},
      {"qwen-v1-tiny-fp32", {"QWenLMHeadModel"}},
      {"chatglm3-tiny-fp16", {"ChatGLMModel", "ChatGLMForConditionalGeneration"}},
      {"baichuan2-7b-tiny-fp16", {"BaichuanForCausalLM", "BaiChuanForCausalLM"}},
  };
  for (const auto& [folder, names] : folders) {
    const auto wanted = changed_folder(folder).spec();
    REQUIRE(wanted.ok());
    for (const std::string& name : names) {
      CAPTURE(folder, name);
      // Exported wrappers may name a class of their own first.
      for (const std::string& list : {"[\"" + name + "\"]", "[\"MyWrapper\", \"" + name + "\"]"}) {
        const auto spec =
            changed_folder(folder).set("architectures", list).set("model_type", "absent").spec();
        REQUIRE(spec.ok());
        CHECK(spec.value().family == wanted.value().family);
        CHECK(spec.value().names.qkv == wanted.value().names.qkv);
      }
    }
  }
  for (const char* name : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    const value config = value_object{{"architectures", twill::value_list{value(name)}}};
    CHECK(families::family_of(config).ok());
  }
}

TEST_CASE("a config without architectures goes by its model type") {
  for (const std::string missing : {"absent", "null", "[]"}) {
    const auto spec = changed_folder("opt-tiny-fp32").set("architectures", missing).spec();
    REQUIRE(spec.ok());
    CHECK(spec.value().family == "opt");
  }
  for (const families::family* f : families::all())
    for (const std::string_view type : f->model_types)
      CHECK(families::family_of(value_object{{"model_type", type}}).value() == f);
}

TEST_CASE("names of architectures and of model types belong to one family each") {
  std::set<std::string_view> architectures, types, gguf;
  for (const families::family* f : families::all()) {
    CAPTURE(f->name);
    CHECK(families::find(f->name) == f);
    for (const std::string_view name : f->architectures)
      CHECK(architectures.insert(name).second);
    for (const std::string_view name : f->model_types)
      CHECK(types.insert(name).second);
    for (const std::string_view name : f->gguf_architectures)
      CHECK(gguf.insert(name).second);
    CHECK((f->gguf_spec != nullptr) == !f->gguf_architectures.empty());
  }
}

TEST_CASE("older key names of Qwen v1 are taken") {
  const auto spec = changed_folder("qwen-v1-tiny-fp32")
                        .set("hidden_size", "absent")
                        .set("n_embd", "64")
                        .set("num_attention_heads", "absent")
                        .set("n_head", "2")
                        .set("num_hidden_layers", "absent")
                        .set("n_layer", "2")
                        .spec();
  REQUIRE(spec.ok());
  CHECK(spec.value().hidden_size == 64);
  CHECK(spec.value().mlp_size == 128);
}

TEST_CASE("Baichuan's positions and head follow from sizes") {
  const auto alibi = changed_folder("baichuan2-13b-tiny-bf16");
  CHECK(alibi.spec().value().alibi_slopes.size() == 3);
  CHECK(alibi.spec().value().normalised_head);
  const auto rotary = changed_folder("baichuan2-7b-tiny-fp16");
  CHECK(rotary.spec().value().rope.kind == twill::gpu::rope_kind::half_split);
  CHECK(rotary.spec().value().alibi_slopes.empty());
}

TEST_CASE("ALiBi slopes are those of Press et al., for any number of heads") {
  const auto eight = families::alibi_slopes(8);
  for (int i = 0; i < 8; ++i)
    CHECK(eight[static_cast<std::size_t>(i)] == Approx(std::exp2(-(i + 1))));
  // The paper's rule for 12: the slopes of 8, then every other one of 16.
  const auto twelve = families::alibi_slopes(12);
  REQUIRE(twelve.size() == 12);
  for (int i = 0; i < 4; ++i)
    CHECK(twelve[static_cast<std::size_t>(8 + i)] == Approx(std::exp2(-0.5 * (2 * i + 1))));
}

TEST_CASE("frequencies grow with the prompt as Qwen's code does, in steps") {
  rope_rule rope;
  rope.kind = twill::gpu::rope_kind::half_split;
  rope.rotary_dim = 8;
  rope.base = 10000;
  rope.trained_length = 32;
  rope.growth = rope_growth::prompt_ntk;
  CHECK_FALSE(grows(rope, 32, 40));
  CHECK(grows(rope, 33, 0));
  const auto base_of = [&](int prompt) {
    return std::pow(grown_frequencies(rope, prompt, 0)[1], -8.0 / 2);
  };
  CHECK(base_of(33) == Approx(10000 * std::pow(3, 8.0 / 6))); // Qwen's alpha is 3
  CHECK(base_of(64) == Approx(10000 * std::pow(3, 8.0 / 6)));
  CHECK(base_of(65) == Approx(10000 * std::pow(7, 8.0 / 6)));
}
