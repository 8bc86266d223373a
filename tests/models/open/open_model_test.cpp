// Folders opened as users open them: texts give the reference's ids, and ids give the reference's
// text.
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/open/model_names.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
using namespace twill::test;
using twill::value;

namespace {

std::shared_ptr<const model> opened(const std::string& name) {
  auto m = open_model(twill::test::golden_dir() + "/" + name);
  INFO((m.ok() ? "" : m.detail()));
  REQUIRE(m.ok());
  return std::move(m).value();
}

id_list ids_of(const value& list) {
  id_list out;
  for (const value& v : list_of(list))
    out.push_back(static_cast<std::int32_t>(*v.as_int()));
  return out;
}

} // namespace

TEST_CASE("each family's folder opens with its tokenizer: ids and texts are the golden's",
          "[golden]") {
  std::size_t n_texts = 0, n_greedy = 0;
  for (const std::string& name : golden_folders()) {
    CAPTURE(name);
    const auto m = opened(name);
    const value golden = read_json_file(m->path + "/golden.json");
    for (const value& p : list_of(*golden.find("prompts"))) {
      const value* text = p.find("text");
      if (text == nullptr || text->as_string() == nullptr) continue;
      CAPTURE(*text->as_string());
      ++n_texts;
      encode_options options;
      options.add_special = true;
      const auto encoded = m->text->encode(*text->as_string(), options);
      REQUIRE(encoded.ok());
      CHECK(encoded.value() == ids_of(*p.find("ids")));
      // Libraries differ in how many U+FFFD stand for broken bytes: the tokenizer goldens pin ours.
      const value* wanted = p.find("greedy_text");
      if (wanted == nullptr || wanted->as_string()->find("\xef\xbf\xbd") != std::string::npos)
        continue;
      ++n_greedy;
      CHECK(m->text->decode(ids_of(*p.find("greedy_ids")), true) == *wanted->as_string());
    }
  }
  CHECK(n_texts >= 16);
  CHECK(n_greedy >= 2);
}

TEST_CASE("a folder's generation defaults apply") {
  const auto baichuan = opened("baichuan2-13b-tiny-bf16");
  CHECK(baichuan->default_sampling.temperature == 0.3f);
  CHECK(baichuan->default_sampling.top_k == 5);
  CHECK(baichuan->default_sampling.top_p == 0.85f);
  CHECK(baichuan->default_sampling.repetition_penalty == 1.05f);
  CHECK(opened("opt-tiny-fp32")->default_sampling.temperature == 1.0f);
}

TEST_CASE("a top_p of 0 in generation_config.json is greedy") {
  const temp_folder at(twill::test::golden_dir() + "/baichuan2-13b-tiny-bf16");
  at.write("generation_config.json", R"({"do_sample": true, "temperature": 0.7, "top_p": 0})");
  const auto m = open_model(at.path());
  INFO((m.ok() ? "" : m.detail()));
  REQUIRE(m.ok());
  CHECK(m.value()->default_sampling.temperature == 0.7f);
  CHECK(twill::config::is_greedy(m.value()->default_sampling));
}

TEST_CASE("numbers that are none matter in keys that are read, and in no other") {
  const std::string source = twill::test::golden_dir() + "/llama-tiny-fp16";
  const auto put = [](const temp_folder& at, const std::string& file, const std::string& members) {
    std::string json = read_file(at.file(file));
    json.insert(json.rfind('}'), ", " + members);
    at.write(file, json);
  };
  const std::string unread = R"("loss": NaN, "best_metric": Infinity, "x": {"y": [-Infinity]})";
  const temp_folder good(source);
  for (const char* file : {"config.json", "generation_config.json", "tokenizer_config.json",
                           "special_tokens_map.json"})
    put(good, file, unread);
  auto m = open_model(good.path());
  INFO((m.ok() ? "" : m.detail()));
  REQUIRE(m.ok());
  const auto plain = opened("llama-tiny-fp16");
  CHECK(m.value()->spec.rope.inv_freq == plain->spec.rope.inv_freq);
  CHECK(m.value()->default_sampling.temperature == plain->default_sampling.temperature);
  CHECK(m.value()->text->eos_id() == plain->text->eos_id());

  const std::vector<std::string> refused[] = {
      {"config.json", "\"rms_norm_eps\": NaN", "`rms_norm_eps` must be a finite number, got nan"},
      {"config.json", "\"rope_theta\": Infinity", "`rope_theta` must be a finite number, got inf"},
      {"config.json", "\"hidden_size\": -Infinity",
       "`hidden_size` must be an integer of at least 1, got -inf"},
      {"config.json", "\"tie_word_embeddings\": NaN",
       "`tie_word_embeddings` must be true or false, got nan"},
      {"generation_config.json", "\"temperature\": NaN",
       "generation_config.json: `temperature` must be between 0 and 100, got nan"},
      {"generation_config.json", "\"repetition_penalty\": Infinity",
       "`repetition_penalty` must be above 0 and finite, got inf"},
      {"generation_config.json", "\"top_k\": NaN", "`top_k` must be a finite number"}};
  for (const auto& one : refused) {
    const temp_folder at(source);
    put(at, one[0], one[1]);
    const auto bad = open_model(at.path());
    CAPTURE(one[1]);
    REQUIRE_FALSE(bad.ok());
    CAPTURE(bad.detail());
    CHECK(bad.code() == errc::bad_metadata);
    CHECK(bad.detail().find(one[2]) != std::string::npos);
  }
}

TEST_CASE("what a path holds is found out: folder, file in it, GGUF by content, dummy, nothing") {
  CHECK(opened("mistral-tiny-awq")->quantization == "AWQ-4");
  CHECK(opened("mistral-tiny-awq/model.safetensors")->spec.family == "mistral");
  CHECK(opened("llama3-style-tied-bf16/model.gguf")->format == "GGUF v3");
  auto dummy = open_model("dummy:opt-125m?layers=1");
  REQUIRE(dummy.ok());
  CHECK(dummy.value()->spec.family == "opt");
  CHECK(dummy.value()->spec.hidden_size == 768);
  for (const std::string& path :
       {std::string("/nowhere"), std::string("dummy:nothing"), twill::test::golden_dir()})
    CHECK_FALSE(open_model(path).ok());
}

TEST_CASE("a model is named after its file, without spaces and the kind of its weights") {
  const auto id = [](const std::string& given, const std::string& path) {
    return names_of(given, path).id;
  };
  const std::string converted = "Smollm2 135M 8k Lc100K Mix1 Ep2";
  const auto names = names_of(converted, "/m/SmolLM2-135M-Instruct.Q4_1.gguf");
  CHECK(names.id == "SmolLM2-135M-Instruct");
  CHECK(names.others == std::vector<std::string>{converted, "Smollm2-135M-8k-Lc100K-Mix1-Ep2",
                                                 "SmolLM2-135M-Instruct.Q4_1"});
  CHECK(id("", "/m/Llama-3.2-1B-Instruct-Q4_K_M.gguf") == "Llama-3.2-1B-Instruct");
  CHECK(id("", "Qwen2.5-0.5B-iq4_xs.gguf") == "Qwen2.5-0.5B");
  CHECK(id("", "big-bf16-00001-of-00003.gguf") == "big");
  CHECK(id("", "my model (new).gguf") == "my-model-new");
  CHECK(id("", "/m/Qwen3-0.6B/") == "Qwen3-0.6B");
  CHECK(id("A Name", "/m/model.gguf") == "A-Name");
  CHECK(id("A Name", "/m/ggml-model-Q4_0.gguf") == "A-Name");
  CHECK(id("", "/m/model.gguf") == "model");
  CHECK(id("a\x1b[2Jb", "/m/x\x01.gguf") == "model");
  CHECK(id("", "/h/models--org--SmolLM2-135M/snapshots/12fd25f77366") == "SmolLM2-135M");
  CHECK(id("", "-of-1.gguf") == "of-1");
  CHECK(id("", "q4_0.gguf") == "q4_0");
  CHECK(names_of("", "/").id == "model");
}
