#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/detokenizer.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::models;
using test::at;
using test::list_of;
using test::text_of;
using test::token_ids;

namespace {

const std::string root = test::golden_dir() + "/tokenizers/";

struct golden {
  value file;
  std::shared_ptr<const tokenizer> text;

  golden(const std::string& kind, const std::string& family) {
    file = test::read_json_file(root + kind + "/tokenizer_golden.json");
    auto opened = test::open_folder_text(root + kind, family);
    INFO((opened.ok() ? std::string() : opened.detail()));
    REQUIRE(opened.ok());
    text = opened.value();
  }

  std::vector<token_id> encode(const std::string& s, encode_options options) const {
    auto ids = text->encode(s, options);
    REQUIRE(ids.ok());
    return ids.value();
  }
};

/// Replaces each run of U+FFFD by one. SentencePiece writes one U+FFFD per undecodable byte, other
/// decoders one per maximal subpart; after this replacement both are equal.
std::string one_per_run(const std::string& text) {
  constexpr std::string_view bad = "\xEF\xBF\xBD";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_bad = std::string_view(text).substr(at).starts_with(bad);
    if (!is_bad || !std::string_view(out).ends_with(bad)) out.append(text, at, is_bad ? 3 : 1);
    at += is_bad ? 3 : 1;
  }
  return out;
}

void check_stream(const golden& g, bool skip_special, bool invalid_too = true) {
  for (const value& entry : list_of(at(g.file, "stream"))) {
    const auto ids = token_ids(at(entry, "ids"));
    const auto& prefixes = list_of(at(entry, "prefix_decodes"));
    const value* chunks = entry.find("chunks");
    detokenizer stream(*g.text, skip_special);
    std::string sum;
    for (std::size_t i = 0; i <= ids.size(); ++i) {
      CAPTURE(text_of(prefixes.back()), i);
      const std::string prefix = g.text->decode(std::span(ids).first(i), skip_special);
      if (invalid_too || text_of(prefixes[i]).find("\xEF\xBF\xBD") == std::string::npos)
        REQUIRE(one_per_run(prefix) == one_per_run(text_of(prefixes[i])));
      const std::string chunk = i < ids.size() ? stream.push(ids[i]) : stream.flush();
      REQUIRE(is_utf8(chunk));
      if (chunks != nullptr) REQUIRE(chunk == text_of(list_of(*chunks)[i]));
      sum += chunk;
    }
    REQUIRE(sum == g.text->decode(ids, skip_special));
  }
}

void check_decode(const golden& g, const char* list, bool skip_special, bool invalid_too = true) {
  if (g.file.find(list) == nullptr) return;
  for (const value& c : list_of(at(g.file, list))) {
    const std::string& expected = text_of(at(c, "decoded"));
    if (!invalid_too && expected.find("\xEF\xBF\xBD") != expected.npos) continue;
    const std::string decoded = g.text->decode(token_ids(at(c, "ids")), skip_special);
    REQUIRE(one_per_run(decoded) == one_per_run(expected));
  }
}

/// Checks the ids of every case: those under `key` if the case has them, else those under "ids".
void check_cases(const golden& g, const char* key, encode_options options) {
  for (const value& c : list_of(at(g.file, "cases"))) {
    const std::string& text = text_of(at(c, "text"));
    CAPTURE(text, key);
    const value* ids = c.find(key);
    REQUIRE(g.encode(text, options) == token_ids(ids != nullptr ? *ids : at(c, "ids")));
  }
}

void check_decoded_cases(const golden& g, bool skip_special) {
  for (const value& c : list_of(at(g.file, "cases"))) {
    CAPTURE(text_of(at(c, "text")));
    REQUIRE(g.text->decode(token_ids(at(c, "ids")), skip_special) == text_of(at(c, "decoded")));
  }
}

void check_sentencepiece(const golden& g) {
  check_decoded_cases(g, true);
  check_decode(g, "decode_random", true);
  check_decode(g, "decode_byte_tokens", true);
  check_stream(g, true);
}

/// If a run of byte tokens as a whole is not valid UTF-8, the tokenizers library's ByteFallback
/// replaces every byte of the run. A stream has to answer before it has seen the whole run. So for
/// files that use ByteFallback, `invalid_too` is false, and results with U+FFFD are not compared.
void check_tokenizer_json(const std::string& kind, bool invalid_too) {
  const golden g(kind, "llama");
  check_cases(g, "ids", {.parse_special = true});
  check_cases(g, "ids_with_special", {.add_special = true, .parse_special = true});
  check_decoded_cases(g, false);
  for (const value& c : list_of(at(g.file, "cases")))
    REQUIRE(g.text->decode(token_ids(at(c, "ids_with_special")), true) ==
            text_of(at(c, "decoded_skip_special")));
  check_decode(g, "decode_random", false, invalid_too);
  check_stream(g, false, invalid_too);
}

} // namespace

TEST_CASE("a Llama tokenizer.model encodes, decodes and streams as SentencePiece", "[golden]") {
  const golden g("llama-spm", "llama");
  check_cases(g, "ids", {});
  check_cases(g, "ids_with_bos", {.add_special = true});
  check_sentencepiece(g);
  CHECK(g.text->bos_id() == 1);
  CHECK(g.text->eos_id() == 2);
  CHECK(g.text->end_ids() == std::vector<token_id>{2});
}

TEST_CASE("added tokens part a Mistral text as transformers does", "[golden]") {
  const golden g("mistral-orca-spm", "mistral");
  check_cases(g, "ids", {});
  check_cases(g, "ids_with_bos", {.add_special = true});
  check_sentencepiece(g);
  for (const value& c : list_of(at(g.file, "hf_parsed_cases"))) {
    CAPTURE(text_of(at(c, "text")));
    REQUIRE(g.encode(text_of(at(c, "text")), {.add_special = true, .parse_special = true}) ==
            token_ids(at(c, "ids_hf")));
  }
  CHECK(g.text->end_ids() == std::vector<token_id>{733});
}

TEST_CASE("ChatGLM3's pieces and appended control tokens encode as its own tokenizer", "[golden]") {
  const golden g("chatglm3-spm", "chatglm");
  check_cases(g, "ids", {});
  check_cases(g, "ids_encode_special_tokens", {.parse_special = true});
  check_sentencepiece(g);
  for (const value& c : list_of(at(g.file, "cases")))
    REQUIRE(g.encode(text_of(at(c, "text")), {.add_special = true}) == token_ids(at(c, "ids_hf")));
}

TEST_CASE("Baichuan2's reserved pieces are text unless asked for", "[golden]") {
  const golden g("baichuan2-spm", "baichuan");
  check_cases(g, "ids_no_user_defined", {});
  for (const value& c : list_of(at(g.file, "cases"))) {
    const std::string& text = text_of(at(c, "text"));
    CAPTURE(text);
    if (text.find("<s>") != text.npos || text.find("</s>") != text.npos) continue;
    REQUIRE(g.encode(text, {.parse_special = true}) == token_ids(at(c, "ids")));
    REQUIRE(g.encode(text, {.add_special = true, .parse_special = true}) ==
            token_ids(at(c, "ids")));
  }
  check_sentencepiece(g);
}

TEST_CASE("Qwen's ranks encode as tiktoken on normalised text", "[golden]") {
  const golden g("qwen-tiktoken", "qwen");
  check_cases(g, "ids", {});
  check_cases(g, "ids_parse_special", {.parse_special = true});
  check_decoded_cases(g, false);
  check_decode(g, "decode_random", false);
  check_decode(g, "decode_byte_tokens", false);
  check_stream(g, false);
  auto ends = g.text->end_ids();
  std::sort(ends.begin(), ends.end());
  CHECK(ends == std::vector<token_id>{520, 522});
}

TEST_CASE("OPT's vocab.json and merges.txt encode as GPT-2's, behind </s>", "[golden]") {
  const golden g("opt-bpe", "opt");
  check_cases(g, "ids", {});
  check_cases(g, "ids_hf", {.add_special = true, .parse_special = true});
  check_decoded_cases(g, false);
  check_decode(g, "decode_random", false);
  check_stream(g, false);
  CHECK(g.text->bos_id() == 2);
}

TEST_CASE("byte-level tokenizer.json files encode as their library", "[golden]") {
  check_tokenizer_json("fast-bytelevel-gpt2", true);
  check_tokenizer_json("fast-bytelevel-llama3", true);
}

TEST_CASE("SentencePiece-style tokenizer.json files encode as their library", "[golden]") {
  check_tokenizer_json("fast-spm-prepend", false);
  check_tokenizer_json("fast-spm-metaspace", false);
}
