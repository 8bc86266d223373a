#include <algorithm>
#include <string>
#include <vector>

#include "models/text/detokenizer.hpp"
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

struct golden {
  value file;
  std::shared_ptr<const tokenizer> text;

  explicit golden(const std::string& name) {
    file = test::read_json_file(test::golden_dir() + "/tokenizers/" + name + ".golden.json");
    auto opened = make_gguf_tokenizer(test::vocab_metadata(name));
    REQUIRE(opened.ok());
    text = opened.value();
  }
};

std::vector<token_id> encode(const tokenizer& t, const std::string& text, encode_options options) {
  auto ids = t.encode(text, options);
  REQUIRE(ids.ok());
  return ids.value();
}

/// Streams the ids: each chunk must be whole characters, and all together the decoded text.
void check_stream(const tokenizer& t, const value& entry) {
  const auto ids = ids_of(at(entry, "ids"));
  const auto& prefixes = test::list_of(at(entry, "prefix_decodes"));
  const value* chunks = entry.find("chunks");
  detokenizer stream(t, false);
  std::string sum;
  for (std::size_t i = 0; i <= ids.size(); ++i) {
    REQUIRE(t.decode(std::span(ids).first(i), false) == text_of(prefixes[i]));
    const std::string chunk = i < ids.size() ? stream.push(ids[i]) : stream.flush();
    REQUIRE(is_utf8(chunk));
    if (chunks != nullptr) REQUIRE(chunk == text_of(test::list_of(*chunks)[i]));
    sum += chunk;
  }
  REQUIRE(sum == text_of(prefixes.back()));
}

void check_tokenizer_json(const std::string& name) {
  const golden g(name);
  for (const value& c : test::list_of(at(g.file, "cases"))) {
    const std::string& text = text_of(at(c, "text"));
    CAPTURE(text);
    const auto ids = ids_of(at(c, "ids"));
    REQUIRE(encode(*g.text, text, {.parse_special = true}) == ids);
    const auto prefixed = encode(*g.text, text, {.add_special = true, .parse_special = true});
    REQUIRE(prefixed == ids_of(at(c, "ids_with_special")));
    REQUIRE(g.text->decode(ids, false) == text_of(at(c, "decoded")));
    REQUIRE(g.text->decode(prefixed, true) == text_of(at(c, "decoded_skip_special")));
  }
  for (const value& c : test::list_of(at(g.file, "decode_random")))
    REQUIRE(g.text->decode(ids_of(at(c, "ids")), false) == text_of(at(c, "decoded")));
  for (const value& entry : test::list_of(at(g.file, "stream")))
    check_stream(*g.text, entry);
}

} // namespace

TEST_CASE("a GPT-2 style vocabulary encodes, decodes and streams as its reference", "[golden]") {
  check_tokenizer_json("bytelevel-gpt2");
}

TEST_CASE("a Llama 3 style vocabulary encodes, decodes and streams as its reference", "[golden]") {
  check_tokenizer_json("bytelevel-llama3");
}

TEST_CASE("an OPT vocabulary encodes literally and streams the reference's chunks", "[golden]") {
  const golden g("opt-bpe");
  for (const value& c : test::list_of(at(g.file, "cases"))) {
    const std::string& text = text_of(at(c, "text"));
    CAPTURE(text);
    const auto ids = ids_of(at(c, "ids"));
    REQUIRE(encode(*g.text, text, {}) == ids);
    REQUIRE(g.text->decode(ids, false) == text_of(at(c, "decoded")));
  }
  for (const value& c : test::list_of(at(g.file, "decode_random"))) {
    REQUIRE(g.text->decode(ids_of(at(c, "ids")), false) == text_of(at(c, "decoded")));
    REQUIRE(g.text->decode(ids_of(at(c, "ids")), true) == text_of(at(c, "decoded_skip_special")));
  }
  for (const value& entry : test::list_of(at(g.file, "stream")))
    check_stream(*g.text, entry);
}
