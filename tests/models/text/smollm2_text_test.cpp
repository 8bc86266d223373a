#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/text/chat_template.hpp"
#include "models/text/tokenizer/gguf_tokenizer.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/vocab.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::models;
using test::at;
using test::ids_of;
using test::text_of;

namespace {

std::string model_path() {
  if (const char* path = std::getenv("TWILL_DEFAULT_MODEL"); path != nullptr) return path;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home_folder = std::getenv("HOME");
  const std::string base =
      cache != nullptr ? cache : std::string(home_folder == nullptr ? "" : home_folder) + "/.cache";
  return base + "/twill/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

std::shared_ptr<const gguf::file> open_file() {
  auto file = gguf::file::open(model_path());
  INFO(model_path());
  REQUIRE(file.ok());
  return file.value();
}

std::shared_ptr<const tokenizer> open_tokenizer() {
  auto opened = make_gguf_tokenizer(open_file()->meta());
  REQUIRE(opened.ok());
  return opened.value();
}

value golden(const std::string& name) {
  return test::read_json_file(test::golden_dir() + "/smollm2/" + name);
}

} // namespace

TEST_CASE("SmolLM2's tokenizer gives the reference's ids and text", "[golden]") {
  const auto t = open_tokenizer();
  const value file = golden("tokenizer_golden.json");
  for (const value& c : test::list_of(at(file, "cases"))) {
    const std::string& text = text_of(at(c, "text"));
    CAPTURE(text);
    CHECK(t->encode(text, {}).value() == ids_of(at(c, "ids")));
    CHECK(t->encode(text, {.add_special = true, .parse_special = true}).value() ==
          ids_of(at(c, "ids_parse_special")));
    CHECK(t->decode(ids_of(at(c, "ids")), false) == text_of(at(c, "decoded")));
  }
  for (const value& entry : test::list_of(at(file, "stream"))) {
    const auto ids = ids_of(at(entry, "ids"));
    const auto& prefixes = test::list_of(at(entry, "prefix_decodes"));
    for (std::size_t i = 0; i <= ids.size(); ++i)
      CHECK(t->decode(std::span(ids).first(i), false) == text_of(prefixes[i]));
  }
  CHECK(t->kind() == "gguf gpt2 / smollm");
}

TEST_CASE("SmolLM2 stops at its end of turn and end of text", "[golden]") {
  auto ends = open_tokenizer()->end_ids();
  auto expected = ids_of(at(golden("chat.json"), "stop_ids"));
  std::sort(ends.begin(), ends.end());
  std::sort(expected.begin(), expected.end());
  CHECK(ends == expected);
}

TEST_CASE("SmolLM2's own template gives the reference prompts and hardened ids", "[golden]") {
  const auto file = open_file();
  const auto t = open_tokenizer();
  auto source = file->meta().get_string("tokenizer.chat_template");
  REQUIRE(source.ok());
  const value expected = golden("chat.json");
  CHECK(source.value() == text_of(at(expected, "template")));
  auto parsed = chat_template::parse(source.value(), t->token_bytes(t->bos_id(), true),
                                     t->token_bytes(t->eos_id(), true));
  REQUIRE(parsed.ok());
  for (const auto& [name, c] : *at(expected, "cases").as_object()) {
    CAPTURE(name);
    auto prompt = parsed.value()->render({.messages = at(c, "messages")});
    REQUIRE(prompt.ok());
    CHECK(prompt.value().text == text_of(at(c, "text")));
    CHECK(t->encode_prompt(prompt.value().text, prompt.value().literal).value() ==
          ids_of(at(c, "ids")));
    CHECK(t->encode_prompt(prompt.value().text, {}).value() ==
          ids_of(at(c, "ids_parse_special_of_text")));
  }
}
