#include <algorithm>
#include <string>
#include <utility>

#include "models/families/registry.hpp"
#include "models/text/chat_conventions.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/template_sources.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::models;
using test::at;
using test::token_ids;

namespace {

const std::string root = test::golden_dir();

struct chat {
  value file;
  std::shared_ptr<const tokenizer> text;
  std::shared_ptr<const chat_template> prompts;

  chat(const std::string& name, const std::string& family, const std::string& folder,
       bool use_own = false) {
    file = test::read_json_file(root + "/chat/" + name + ".json");
    const test::folder_json json(folder);
    auto opened = test::open_folder_text(folder, family);
    REQUIRE(opened.ok());
    text = opened.value();
    const std::string own = folder_template_sources(folder, &json.tokenizer_config).main;
    auto parsed = chat_template::parse(
        use_own ? own
                : known_chat_template(
                      families::find(family)->chat,
                      {json.config, *text,
                       json.generation_config.is_null() ? nullptr : &json.generation_config}),
        text->token_bytes(text->bos_id(), true), text->token_bytes(text->eos_id(), true));
    INFO((parsed.ok() ? std::string() : parsed.detail()));
    REQUIRE(parsed.ok());
    prompts = parsed.value();
  }

  models::result<rendered_prompt> render(const value& messages) const {
    template_input input;
    input.messages = messages;
    return prompts->render(input);
  }

  void check_case(const std::string& name, const value& c) const {
    CAPTURE(name);
    const auto rendered = render(at(c, "messages"));
    const value* ids = c.find("ids");
    REQUIRE(rendered.ok() == (ids != nullptr));
    if (ids == nullptr) return;
    const auto encoded = text->encode_prompt(rendered.value().text, rendered.value().literal);
    REQUIRE(encoded.ok());
    CHECK(encoded.value() == token_ids(*ids));
  }

  void check() const {
    REQUIRE(at(file, "cases").as_object()->size() == 15);
    for (const auto& [name, c] : *at(file, "cases").as_object())
      check_case(name, c);
    auto stops = token_ids(at(file, "stop_ids")), ends = text->end_ids();
    std::sort(stops.begin(), stops.end());
    std::sort(ends.begin(), ends.end());
    CHECK(ends == stops);
  }
};

std::string tokens(const std::string& kind) {
  return root + "/tokenizers/" + kind;
}

} // namespace

TEST_CASE("ChatGLM3 conversations become its authors' ids", "[golden]") {
  chat("chatglm3", "chatglm", tokens("chatglm3-spm")).check();
}

TEST_CASE("Baichuan2 conversations become its authors' ids, and control text stays text",
          "[golden]") {
  chat("baichuan2", "baichuan", tokens("baichuan2-spm")).check();
  chat("baichuan2", "baichuan", root + "/baichuan2-7b-tiny-fp16").check();
}

TEST_CASE("Qwen v1 conversations become its authors' ids", "[golden]") {
  chat("qwen-v1", "qwen", tokens("qwen-tiktoken")).check();
}

TEST_CASE("Mistral's [INST] conversations become its authors' ids", "[golden]") {
  chat("mistral-instruct", "mistral", tokens("llama-spm")).check();
}

TEST_CASE("OpenOrca conversations are hardened ChatML, by convention and by its own template",
          "[golden]") {
  chat("mistral-openorca", "mistral", tokens("mistral-orca-spm")).check();
  chat("mistral-openorca", "mistral", tokens("mistral-orca-spm"), true).check();
}

TEST_CASE("a template that writes BOS itself gets no second one") {
  const auto text = test::open_folder_text(tokens("llama-spm"), "llama").value();
  const auto bare = text->encode_prompt("hello", {});
  const auto with_bos = text->encode_prompt("<s>hello", {});
  REQUIRE(bare.ok());
  REQUIRE(with_bos.ok());
  CHECK(bare.value() == with_bos.value());
  CHECK(bare.value().front() == 1);
  // The text "<s>" of a user does not become BOS.
  CHECK(text->encode_prompt("<s>hello", {{0, 8}}).value().size() > with_bos.value().size());
}

TEST_CASE("cut marks of the template leave the text, those of messages stay") {
  const std::string mark(cut_mark);
  auto parsed = chat_template::parse("a" + mark + "{{ messages[0] }}" + mark + "b", "", "");
  REQUIRE(parsed.ok());
  template_input input;
  input.messages = value_list{value("x" + mark + "y")};
  const auto rendered = parsed.value()->render(input);
  REQUIRE(rendered.ok());
  CHECK(rendered.value().text == "ax" + mark + "yb");
  CHECK(rendered.value().literal == byte_ranges{{1, 1}, {1, 6}, {6, 6}});
}
