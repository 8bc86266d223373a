// Folders whose files add tokens for which the embedding has no row, as fine-tunes with a pad token
// of their own do. Such a token can be neither read nor drawn, so the folder opens, and texts get
// the ids that they would have without the token.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
using twill::test::temp_folder;

namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Puts `text` behind the first `{` or `[` after `key` of a JSON file.
void insert_after(const temp_folder& at, const std::string& file, const std::string& key,
                  const std::string& text) {
  std::string json = bytes_of(at.file(file));
  const auto found = json.find(key);
  REQUIRE(found != json.npos);
  json.insert(json.find_first_of("{[", found) + 1, text);
  at.write(file, json);
}

const std::string pad_entry = R"("content":"<pad!>","lstrip":true,"normalized":false,)"
                              R"("rstrip":true,"single_word":false,"special":true})";

void add_to_file(const temp_folder& at, const std::string& id) {
  at.write("added_tokens.json", R"({"<pad!>": )" + id + "}");
}

void add_to_decoder(const temp_folder& at, const std::string& id) {
  const std::string entry = "\"" + id + "\":{" + pad_entry;
  if (bytes_of(at.file("tokenizer_config.json")).find("added_tokens_decoder") != std::string::npos)
    insert_after(at, "tokenizer_config.json", "\"added_tokens_decoder\"", entry + ",");
  else
    insert_after(at, "tokenizer_config.json", "",
                 "\"added_tokens_decoder\":{" + entry + "},\"pad_token\":\"<pad!>\",");
}

void add_to_json(const temp_folder& at, const std::string& id) {
  insert_after(at, "tokenizer.json", "\"added_tokens\"", "{\"id\":" + id + "," + pad_entry + ",");
}

std::shared_ptr<const model> opened(const std::string& path) {
  auto m = open_model(path);
  INFO((m.ok() ? "" : m.detail()));
  REQUIRE(m.ok());
  return std::move(m).value();
}

struct kind {
  const char* folder;
  bool has_json;
};
constexpr kind kinds[] = {{"llama-tiny-fp16", false},
                          {"mistral-tiny-awq", false},
                          {"opt-tiny-fp32", false},
                          {"llama3-style-tied-bf16", true},
                          {"llama-tiny-gptq", true}};

const std::string texts[] = {"a <pad!> b", "<pad!>", "<pad!><pad!>x", "  <pad!>\n", "plain", ""};

} // namespace

TEST_CASE("an added token beyond the embedding's rows is text like any other") {
  using adder = void (*)(const temp_folder&, const std::string&);
  for (const auto& [folder, has_json] : kinds) {
    const std::string source = twill::test::golden_dir() + "/" + folder;
    const auto plain = opened(source);
    const std::int64_t rows = plain->spec.vocab_size;
    std::vector<adder> adders = {add_to_file, add_to_decoder};
    if (has_json) adders.push_back(add_to_json);
    for (const adder add : adders)
      for (const std::int64_t id : {rows, rows + 63, std::int64_t{1} << 40}) {
        CAPTURE(folder, id);
        const temp_folder at(source);
        add(at, std::to_string(id));
        const auto padded = opened(at.path());
        CHECK(padded->text->vocab_size() <= rows);
        for (const std::string& text : texts) {
          encode_options options;
          options.add_special = options.parse_special = true;
          const auto ids = padded->text->encode(text, options);
          REQUIRE(ids.ok());
          // The added_tokens.json of one folder has two chat tokens, which no text here contains.
          CHECK(ids.value() == plain->text->encode(text, options).value());
          CHECK(padded->text->encode_prompt(text, {}).value() ==
                plain->text->encode_prompt(text, {}).value());
        }
      }
  }
}

TEST_CASE("an added token that has a row stays a token, whatever follows it") {
  const temp_folder at(twill::test::golden_dir() + "/mistral-tiny-awq"); // 735 tokens, 736 rows
  at.write("added_tokens.json",
           R"({"<|im_end|>": 733, "<|im_start|>": 734, "<last>": 735, "<beyond>": 736})");
  const auto m = opened(at.path());
  CHECK(m->text->vocab_size() == 736);
  encode_options options;
  options.parse_special = true;
  CHECK(m->text->encode("<last>", options).value() == std::vector<token_id>{735});
  CHECK(m->text->encode("<beyond>", options).value().size() > 1);
}

TEST_CASE("what only tokens with rows can be stays an error") {
  const std::string source = twill::test::golden_dir() + "/llama-tiny-gptq";
  SECTION("an id below 0") {
    const temp_folder at(source);
    at.write("added_tokens.json", R"({"<pad!>": -1})");
    const auto m = open_model(at.path());
    REQUIRE_FALSE(m.ok());
    CHECK(m.detail().find("given -1") != std::string::npos);
  }
  SECTION("a prefix that the post-processor writes") {
    const temp_folder at(source);
    std::string json = bytes_of(at.file("tokenizer.json"));
    const std::string before = R"("ids":[1])";
    json.erase(
        std::remove_if(json.begin(), json.end(), [](char c) { return c == ' ' || c == '\n'; }),
        json.end());
    const auto found = json.find(before);
    REQUIRE(found != json.npos);
    json.replace(found, before.size(), R"("ids":[720])");
    at.write("tokenizer.json", json);
    add_to_file(at, "720");
    CHECK_FALSE(open_model(at.path()).ok());
  }
  SECTION("a word of the vocabulary") {
    const temp_folder at(source);
    insert_after(at, "tokenizer.json", "\"vocab\"", R"("beyond": 720,)");
    const auto m = open_model(at.path());
    REQUIRE_FALSE(m.ok());
    CHECK(m.detail().find("at most as many tokens as the embedding has rows") != std::string::npos);
  }
}
