// Folders as users open them: text in, the reference's ids; ids out, the reference's text.
#include <string>

#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"
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
