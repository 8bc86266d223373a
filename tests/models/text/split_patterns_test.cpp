// The regular expressions of tokenizer.json split texts as Hugging Face's library does. A script in
// tools/golden recorded the library's results.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "models/text/tokenizer/oniguruma.hpp"
#include "models/text/tokenizer/pretokenizer.hpp"
#include "models/text/tokenizer/regex.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill;
using namespace twill::models;
using test::at;
using test::list_of;
using test::text_of;

namespace {

const value& golden() {
  static const value file =
      test::read_json_file(test::golden_dir() + "/tokenizers/split_patterns.json");
  return file;
}

std::vector<std::int64_t> cuts_of(const pretokenizer& split, const std::string& text) {
  word_list list;
  REQUIRE(split.split(text, true, list).ok());
  std::vector<std::int64_t> cuts;
  std::int64_t at = 0;
  for (const std::string_view word : list.words)
    cuts.push_back(at += static_cast<std::int64_t>(word.size()));
  REQUIRE(at == static_cast<std::int64_t>(text.size()));
  cuts.pop_back();
  return cuts;
}

void check_cuts(const pretokenizer& split, const value& texts, const value& expected) {
  for (std::size_t i = 0; i < list_of(texts).size(); ++i) {
    const std::string& text = text_of(list_of(texts)[i]);
    CAPTURE(text);
    std::vector<std::int64_t> cuts;
    for (const value& cut : list_of(list_of(expected)[i]))
      cuts.push_back(*cut.as_int());
    CHECK(cuts_of(split, text) == cuts);
  }
}

/// Checks each entry of a list of patterns, and returns how many entries have a pattern that is
/// refused. Entries without texts of their own are checked with the texts that all entries share.
int check_list(const char* list) {
  int n_refused = 0;
  for (const value& entry : list_of(at(golden(), list))) {
    std::vector<split_rule> rules;
    bool refused = false;
    for (const value& expression : list_of(at(entry, "expressions"))) {
      const auto compiled = regex::make_oniguruma(text_of(expression));
      INFO(text_of(expression));
      UNSCOPED_INFO((compiled.ok() ? std::string() : compiled.detail()));
      if (refused = !compiled.ok(); refused) break;
      rules.push_back(split_by(compiled.value(), match_behavior::isolated, false));
    }
    n_refused += refused;
    if (refused) continue;
    CAPTURE(text_of(list_of(at(entry, "expressions")).front()));
    const value* own = entry.find("texts");
    check_cuts(pretokenizer(std::move(rules)), own != nullptr ? *own : at(golden(), "texts"),
               at(entry, "cuts"));
  }
  return n_refused;
}

} // namespace

TEST_CASE("published split patterns cut as their library cuts", "[golden]") {
  CHECK(check_list("published") == 0);
}

TEST_CASE("GGUF pre-tokenizers cut as the published split patterns", "[golden]") {
  // Each row has a name in the golden file, then llama.cpp's names of the same expressions.
  const std::vector<std::vector<std::string>> names = {
      {"default", "default"},
      {"gpt2",    "gpt-2",      "gpt2",           "phi-2",      "roberta-bpe", "jina-es",
       "jina-de", "jina-v1-en", "jina-v2-code",   "jina-v2-de", "jina-v2-es",  "mpt",
       "olmo",    "jais",       "gigachat",       "a.x-4.0",    "mellum",      "modern-bert",
       "exaone4", "trillion",   "granite-docling"},
      {"starcoder", "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone",
       "minerva-7b", "mellum2"},
      {"llama3", "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
       "lfm2", "jina-v5-nano", "smollm3", "dbrx", "smaug-bpe", "glm4", "chatglm-bpe"},
      {"jais-2", "jais-2"},
      {"qwen2", "qwen2", "deepseek-r1-qwen", "stablelm2", "kormo", "f2llmv2", "megrez", "hunyuan",
       "solar-open", "grok-2"},
      {"qwen3.5", "qwen35"},
      {"ufakzeka", "ufakzeka"},
      {"laguna", "laguna"},
      {"minicpm5", "minicpm5"},
      {"seed-coder", "seed-coder"},
      {"bailingmoe", "bailingmoe", "bailingmoe2", "llada-moe"},
      {"exaone-moe", "exaone-moe"},
      {"tekken", "tekken"},
      {"gpt-4o", "gpt-4o", "kanana2", "talkie", "minimax-m2", "llama4", "granite-embed-multi-97m"},
      {"tiny-aya", "tiny_aya", "cohere2moe"},
      {"superbpe", "superbpe"},
      {"afmoe", "afmoe"},
      {"youtu", "youtu"},
      {"kimi-k2", "kimi-k2"},
      {"falcon", "falcon"},
      {"bloom", "bloom", "poro-chat", "gpt3-finnish"},
      {"viking", "viking"},
      {"chameleon", "chameleon"},
      {"deepseek-llm", "deepseek-llm"},
      {"deepseek-coder", "deepseek-coder"},
      {"deepseek-v3", "deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"},
      {"spark2.5", "spark2_5"},
  };
  std::size_t n_names = 0;
  for (const auto& group : names) {
    const auto& published = list_of(at(golden(), "published"));
    const auto it = std::find_if(published.begin(), published.end(), [&](const value& entry) {
      return text_of(at(entry, "name")) == group.front();
    });
    REQUIRE(it != published.end());
    for (auto name = group.begin() + 1; name != group.end(); ++name, ++n_names) {
      CAPTURE(*name);
      const auto kind = find_pretokenizer(*name);
      REQUIRE(kind.ok());
      const auto split = pretokenizer::from_steps(kind.value().steps);
      INFO((split.ok() ? std::string() : split.detail()));
      REQUIRE(split.ok());
      check_cuts(split.value(), at(golden(), "texts"), at(*it, "cuts"));
    }
  }
  CHECK(n_names == pretokenizer_names().size());
}

TEST_CASE("GGUF pre-tokenizers take time in proportion to the length of a hostile text") {
  std::set<std::string> seen;
  for (const std::string_view name : pretokenizer_names()) {
    const auto kind = find_pretokenizer(name).value();
    std::string all;
    for (const split_step& step : kind.steps)
      all += step.expression + "\n";
    if (!seen.insert(all).second) continue;
    for (const std::string unit : {"1", " ", "a", "\n", "\u4e00"}) {
      CAPTURE(name, unit);
      std::string text;
      while (text.size() < 200'000)
        text += unit;
      text += "x";
      const auto split = pretokenizer::from_steps(kind.steps);
      word_list list;
      const auto begin = std::chrono::steady_clock::now();
      REQUIRE(split.value().split(text, true, list).ok());
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      CHECK(took.count() < 10); // quadratic work takes minutes with sanitizers
    }
  }
}

TEST_CASE("expressions that are cut in linear time cut as their library cuts", "[golden]") {
  int n_found = 0;
  for (const value& entry : list_of(at(golden(), "published"))) {
    bool any = false;
    std::vector<split_step> steps;
    for (const value& expression : list_of(at(entry, "expressions"))) {
      auto linear = linear_steps(text_of(expression));
      any = any || linear;
      const auto translated = oniguruma_to_pcre2(text_of(expression));
      if (!linear) linear = {{translated.value(), false}};
      steps.insert(steps.end(), linear->begin(), linear->end());
    }
    if (!any) continue;
    ++n_found;
    CAPTURE(text_of(at(entry, "name")));
    check_cuts(pretokenizer::from_steps(steps).value(), at(golden(), "texts"), at(entry, "cuts"));
  }
  CHECK(n_found == 2);
}

TEST_CASE("a tokenizer.json splits by Oniguruma's meaning, and long numbers in little time") {
  const std::string from = test::golden_dir() + "/tokenizers/fast-bytelevel-gpt2";
  const std::string json = read_text_file(from + "/tokenizer.json").value();
  const auto ids = [&](const std::string& expression, const std::string& text) {
    const std::string split = R"({"type":"Sequence","pretokenizers":[{"type":"Split","behavior":)"
                              R"("Isolated","invert":false,"pattern":{"Regex":")" +
                              expression +
                              R"("}},{"type":"ByteLevel","add_prefix_space":false,)"
                              R"("use_regex":false,"trim_offsets":true}]})";
    const test::temp_folder folder;
    const std::size_t key = json.find("\"pre_tokenizer\":");
    const std::size_t next = json.find("\"post_processor\":");
    REQUIRE(key < next);
    folder.write("tokenizer.json",
                 json.substr(0, key) + "\"pre_tokenizer\":" + split + "," + json.substr(next));
    const auto opened = test::open_folder_text(folder.path(), "llama");
    INFO((opened.ok() ? std::string() : opened.detail()));
    REQUIRE(opened.ok());
    const auto encoded = opened.value()->encode(text, {});
    REQUIRE(encoded.ok());
    return encoded.value();
  };
  const std::string text = "the and\xE4\xB8\x80the";
  CHECK(ids(R"([\\u4e00-\\u9fff])", text) == ids(R"(\\p{Han})", text));
  CHECK(ids(R"([\\p{L}&&[^\\p{Han}]]+)", text) == ids(R"([a-z]+)", text));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ids(R"((?=(\\d{3})+(?!\\d)))", std::string(300'000, '1')).size() >= 100'000);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() < 10); // matching the expression itself takes minutes
}

TEST_CASE("each construct of Oniguruma's syntax cuts as its library cuts", "[golden]") {
  CHECK(check_list("constructs") == 0);
}

TEST_CASE("random split patterns cut as their library cuts, or are refused", "[golden]") {
  CHECK(check_list("random") < 50); // of 150
}

TEST_CASE("a split pattern without an exact counterpart is refused, with the place") {
  for (const value& expression : list_of(at(golden(), "refused"))) {
    CAPTURE(text_of(expression));
    const auto compiled = regex::make_oniguruma(text_of(expression));
    REQUIRE_FALSE(compiled.ok());
    CHECK(compiled.code() == errc::unsupported);
    CHECK(compiled.detail().find("offset") != std::string::npos);
  }
}

TEST_CASE("split patterns of hostile files end in a failure, never in deep recursion") {
  const auto many = [](const std::string& unit, std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i)
      text += unit;
    return text;
  };
  for (const std::string& expression :
       {many("(", 60'000), many("[", 60'000), many("(?i)", 16'000), many("a|", 30'000) + "(",
        "(?:" + many("a{60000}", 8'000) + "){60000}", std::string(70'000, 'a'), std::string("\xFF"),
        many("(?#", 20'000), std::string("(?#\\"), std::string("[a\\"), std::string("\\"),
        std::string("[[:"), std::string("(?<"), std::string("\\p{"), std::string("\\x{"),
        std::string("(?")}) {
    CAPTURE(expression.substr(0, 20));
    CHECK_FALSE(regex::make_oniguruma(expression).ok());
  }
}
