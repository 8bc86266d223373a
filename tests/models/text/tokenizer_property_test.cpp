#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/gguf/metadata.hpp"
#include "models/text/detokenizer.hpp"
#include "models/text/tokenizer/gguf_tokenizer.hpp"
#include "models/text/tokenizer/sentencepiece_file.hpp"
#include "models/text/tokenizer/unicode.hpp"
#include "models/text/tokenizer/unigram.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::models;

namespace {

const std::string root = test::golden_dir() + "/tokenizers/";

const std::vector<std::pair<std::string, std::string>> kinds = {
    {"opt-bpe", "opt"},
    {"llama-spm", "llama"},
    {"mistral-orca-spm", "mistral"},
    {"fast-bytelevel-gpt2", "llama"},
    {"fast-bytelevel-llama3", "llama"},
    {"fast-spm-prepend", "llama"},
    {"fast-spm-metaspace", "llama"},
    {"qwen-tiktoken", "qwen"},
    {"chatglm3-spm", "chatglm"},
    {"baichuan2-spm", "baichuan"},
};

std::shared_ptr<const tokenizer> open_kind(const std::string& kind, const std::string& family) {
  auto opened = test::open_folder_text(root + kind, family);
  INFO((opened.ok() ? std::string() : opened.detail()));
  REQUIRE(opened.ok());
  return opened.value();
}

char32_t random_character(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<char32_t>(random() % n); };
  switch (random() % 8) {
  case 0:
    return below(0x80); // control characters, too
  case 1:
    return 0x80 + below(0x780);
  case 2:
    return 0x4E00 + below(0x5000);
  case 3:
    return 0x1F300 + below(0x400);
  case 4: {
    const char32_t c = below(0x110000);
    return c >= 0xD800 && c < 0xE000 ? U'x' : c;
  }
  case 5:
    return U' ';
  default:
    return U'a' + below(26);
  }
}

std::string random_text(std::mt19937& random) {
  std::string text;
  for (auto n = random() % 40; n > 0; --n) {
    const char32_t c = random_character(random);
    append_utf8(text, c == 0x2581 ? U'_' : c); // U+2581 is SentencePiece's space
  }
  return text;
}

/// The metadata of a GGUF file (tokenizer.ggml.model "llama") made from a SentencePiece file.
gguf::metadata llama_metadata(const std::string& path) {
  const auto file = sentencepiece_file::parse(read_text_file(path).value()).value();
  gguf::string_array tokens;
  gguf::float_array scores;
  gguf::int_array types;
  for (const auto& piece : file.pieces) {
    tokens.push_back(piece.text);
    scores.push_back(static_cast<double>(piece.score));
    types.push_back(static_cast<std::int64_t>(piece.type));
  }
  gguf::metadata metadata;
  metadata.entries["tokenizer.ggml.model"] = std::string("llama");
  metadata.entries["tokenizer.ggml.tokens"] = std::move(tokens);
  metadata.entries["tokenizer.ggml.scores"] = std::move(scores);
  metadata.entries["tokenizer.ggml.token_type"] = std::move(types);
  metadata.entries["tokenizer.ggml.bos_token_id"] = std::int64_t{1};
  metadata.entries["tokenizer.ggml.eos_token_id"] = std::int64_t{2};
  metadata.entries["tokenizer.ggml.unknown_token_id"] = std::int64_t{0};
  return metadata;
}

std::string repeated(const std::string& text, std::size_t n_bytes) {
  std::string out;
  while (out.size() < n_bytes)
    out += text;
  return out;
}

} // namespace

TEST_CASE("decoding what encoding made gives the text back, for every kind") {
  for (const auto& [kind, family] : kinds) {
    const auto text = open_kind(kind, family);
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
      std::string given = random_text(random);
      // This kind's pre-tokenizer takes a first space for the dummy prefix.
      if (kind == "fast-spm-metaspace" && given.starts_with(' ')) given.insert(0, "x");
      if (kind == "qwen-tiktoken") given = normalize(given, normal_form::nfc);
      CAPTURE(kind, given);
      const auto ids = text->encode(given, {});
      REQUIRE(ids.ok());
      REQUIRE(text->decode(ids.value(), false) == given);
    }
  }
}

TEST_CASE("bytes that are no text are refused, never half encoded") {
  for (const auto& [kind, family] : kinds) {
    const auto text = open_kind(kind, family);
    std::mt19937 random(11);
    for (int i = 0; i < 100; ++i) {
      std::string given;
      for (auto n = random() % 8; n > 0; --n)
        given.push_back(static_cast<char>(random()));
      const auto ids = text->encode(given, {});
      REQUIRE(ids.ok() == is_utf8(given));
      if (!ids.ok()) REQUIRE(ids.code() == errc::bad_text);
    }
  }
}

TEST_CASE("a GGUF llama vocabulary encodes as its SentencePiece original", "[golden]") {
  const auto opened = make_gguf_tokenizer(llama_metadata(root + "llama-spm/tokenizer.model"));
  INFO((opened.ok() ? std::string() : opened.detail()));
  REQUIRE(opened.ok());
  const value file = test::read_json_file(root + "llama-spm/tokenizer_golden.json");
  for (const value& c : test::list_of(test::at(file, "cases"))) {
    const std::string& text = test::text_of(test::at(c, "text"));
    CAPTURE(text);
    const auto ids = opened.value()->encode(text, {.add_special = true});
    REQUIRE(ids.ok());
    REQUIRE(ids.value() == test::token_ids(test::at(c, "ids_with_bos")));
    REQUIRE(opened.value()->decode(ids.value(), true) == test::text_of(test::at(c, "decoded")));
  }
}

TEST_CASE("hostile texts take time in proportion to their length") {
  // "\xCC\x81\xCC\xA3", two marks in the wrong order, tests the time of canonical ordering.
  const std::string texts[] = {
      "a", " ", "ab", "\n", "<", "1", "\xE4\xBD\xA0", "\xCC\x81\xCC\xA3", "[INST]", "\xE2\x96\x81"};
  for (const auto& [kind, family] : kinds) {
    const auto text = open_kind(kind, family);
    for (const std::string& unit : texts) {
      CAPTURE(kind, unit);
      const std::string given = repeated(unit, 200'000);
      const auto begin = std::chrono::steady_clock::now();
      const auto ids = text->encode(given, {.parse_special = true});
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      REQUIRE(ids.ok());
      // Quadratic work would take minutes; the slack is for sanitizers and busy machines.
      CHECK(took.count() < 20);
    }
  }
}

TEST_CASE("normal forms follow the standard's examples") {
  CHECK(normalize("e\xCC\x81", normal_form::nfc) == "\xC3\xA9");
  CHECK(normalize("\xC3\xA9", normal_form::nfd) == "e\xCC\x81");
  CHECK(normalize("\xEF\xAC\x81", normal_form::nfkc) == "fi");
  CHECK(normalize("\xEF\xAC\x81", normal_form::nfc) == "\xEF\xAC\x81");
  // Marks are ordered by class: dot below (220) before acute (230).
  CHECK(normalize("q\xCC\x81\xCC\xA3", normal_form::nfc) == "q\xCC\xA3\xCC\x81");
  // Hangul: U+1100 U+1161 U+11A8 is U+AC01.
  CHECK(normalize("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", normal_form::nfc) == "\xEA\xB0\x81");
}

TEST_CASE("a unigram word is cut along its most probable pieces") {
  unigram_parts parts;
  parts.pieces = {{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -1.5}, {"aba", -4}, {"<0x63>", -9}};
  parts.unknown = 0;
  const auto model = make_unigram(parts);
  const auto encode = [&](std::string_view word) {
    std::vector<token_id> ids;
    REQUIRE(model->encode({word}, ids).ok());
    return ids;
  };
  CHECK(encode("aba") == std::vector<token_id>{3, 1});
  CHECK(encode("bab") == std::vector<token_id>{2, 3});
  CHECK(encode("axyb") == std::vector<token_id>{1, 0, 2}); // unknown characters are one token
  parts.byte_fallback = true;
  std::vector<token_id> ids;
  REQUIRE(make_unigram(parts)->encode({std::string_view("acb")}, ids).ok());
  CHECK(ids == std::vector<token_id>{1, 5, 2});
}
