// What `twill-bench accuracy` computes, compared with closed formulas and with the figures stored
// in golden folders.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/gpu/distant/distant_device.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"
#include "tools/twill-bench/accuracy/candidate.hpp"
#include "tools/twill-bench/accuracy/compare.hpp"
#include "tools/twill-bench/accuracy/divergence.hpp"
#include "tools/twill-bench/accuracy/table.hpp"

using namespace twill::bench;
namespace test = twill::test;

namespace {

using row = std::vector<float>;

float ln(double x) {
  return static_cast<float>(std::log(x));
}

std::string golden_path(const std::string& name) {
  return test::golden_dir() + "/" + name;
}

/// The reference's perplexity: exp of its mean -log p over prompts and greedy tokens.
double golden_perplexity(const std::string& folder) {
  const twill::value golden = test::read_json_file(folder + "/golden.json");
  double sum = 0;
  int n = 0;
  for (const twill::value& prompt : test::list_of(*golden.find("prompts")))
    for (const char* key : {"prompt_logprobs", "greedy_logprobs"})
      for (const twill::value& v : test::list_of(*prompt.find(key))) {
        if (v.is_null()) continue; // nothing predicts the first token
        sum -= test::number_of(v);
        ++n;
      }
  return std::exp(sum / n);
}

} // namespace

TEST_CASE("log_sum_exp is exact for uniform rows and does not overflow") {
  CHECK(log_sum_exp(row(4, 0.0f)) == Approx(std::log(4.0)));
  CHECK(log_sum_exp(row(2, 10000.0f)) == Approx(10000 + std::log(2.0)));
  CHECK(log_sum_exp(row(2, -10000.0f)) == Approx(-10000 + std::log(2.0)));
}

TEST_CASE("of equal logits the first is the argmax") {
  CHECK(argmax(row{1, 3, 3, 2}) == 1);
}

TEST_CASE("KL divergence equals its closed form and does not see a common shift") {
  const row half = {ln(0.5), ln(0.5)}, quarter = {ln(0.25), ln(0.75)};
  const double expected = 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3);
  CHECK(kl_divergence(half, quarter) == Approx(expected).epsilon(1e-6));
  const double other_way = 0.25 * std::log(0.5) + 0.75 * std::log(1.5);
  CHECK(kl_divergence(quarter, half) == Approx(other_way).epsilon(1e-6));
  CHECK(kl_divergence(half, row{half[0] + 8, half[1] + 8}) == Approx(0).margin(1e-12));
  CHECK(kl_divergence(quarter, quarter) == 0);
}

TEST_CASE("KL divergence of close rows is their second-order term, not rounding noise") {
  // KL = (1/2) sum p (dx - mean dx)^2 for logits that differ by dx: here p = 1/2, dx = +-e.
  const float e = 1.0f / 4096;
  const double expected = 0.5 * double{e} * double{e};
  CHECK(kl_divergence(row{0, 0}, row{e, -e}) == Approx(expected).epsilon(1e-4));
}

TEST_CASE("a token that only the reference allows makes KL infinite, the reverse does not") {
  const float never = -std::numeric_limits<float>::infinity();
  CHECK(std::isinf(kl_divergence(row{0, 0}, row{0, never})));
  CHECK(kl_divergence(row{0, never}, row{0, 0}) == Approx(std::log(2.0)));
}

TEST_CASE("a tally averages over positions, and perplexity is exp of the mean surprise") {
  const row flat(4, 0.0f), sure = {ln(0.7), ln(0.1), ln(0.1), ln(0.1)};
  tally t;
  t.add(flat, flat, 3, false);
  CHECK(t.perplexity() == Approx(4));
  CHECK(t.greedy_tokens() == 0);
  t.add(sure, row{ln(0.1), ln(0.7), ln(0.1), ln(0.1)}, 0, true);
  CHECK(t.positions() == 2);
  CHECK(t.same_argmax() == 0.5);
  CHECK(t.greedy_tokens() == 1);
  CHECK(t.greedy_found() == 0);
  CHECK(t.reference_perplexity() == Approx(std::sqrt(4 / 0.7)));
  CHECK(t.perplexity() == Approx(std::sqrt(4 / 0.1)));
  const double kl = 0.7 * std::log(7.0) + 0.1 * std::log(1.0 / 7);
  CHECK(t.max_kl() == Approx(kl).epsilon(1e-6));
  CHECK(t.mean_kl() == Approx(kl / 2).epsilon(1e-6));
}

TEST_CASE("each family in f32 has the perplexity and the tokens of its reference", "[golden]") {
  for (const std::string& name : test::golden_folders()) {
    CAPTURE(name);
    const auto s = open_golden(golden_path(name), name);
    REQUIRE(s.ok());
    const auto tallies =
        compare_types(test::shared_device(), s.value(), {{"bf16", "int8"}, {"w8a8", "bf16"}});
    REQUIRE(tallies.ok());
    const tally& rounded = tallies.value().back();
    CHECK(rounded.same_argmax() > 0.9);
    CHECK(rounded.mean_kl() > 1e-3); // weights of 8 bits cannot be exact
    CHECK(rounded.mean_kl() < (test::shared_device().info().multiplies_f16 ? 0.04 : 0.02));
    const tally& t = tallies.value().front();
    CHECK(t.reference_perplexity() == Approx(golden_perplexity(golden_path(name))).epsilon(1e-4));
    CHECK(t.same_argmax() > 0.9);
    CHECK(t.greedy_found() > 0.9);
    CHECK(t.mean_kl() > 0);
    CHECK(t.mean_kl() < 0.01);
    CHECK(t.perplexity() == Approx(t.reference_perplexity()).epsilon(0.02));
  }
}

TEST_CASE("f16 and bf16 are near f32 where activations have 16 bits and the residual 32",
          "[golden]") {
  if (!test::tests_host()) return;
  const test::distant_transfers transfers;
  for (const char* name : {"baichuan2-13b-tiny-gptq", "chatglm3-tiny-fp16", "llama-tiny-fp16",
                           "llama3-style-tied-bf16", "mistral-tiny-awq", "opt-tiny-fp32"}) {
    CAPTURE(name);
    auto s = open_golden(golden_path(name), name);
    REQUIRE(s.ok());
    s.value().sequences.resize(2);
    auto dev = test::open_distant({.threads = 2});
    const auto tallies = compare_types(*dev, s.value(), {{"f16", "f16"}, {"bf16", "bf16"}});
    REQUIRE(tallies.ok());
    const tally& f16 = tallies.value().front();
    const tally& bf16 = tallies.value().back();
    CHECK(f16.mean_kl() > 0);
    CHECK(f16.mean_kl() < 2e-5);
    CHECK(f16.same_argmax() > 0.99);
    CHECK(bf16.mean_kl() > f16.mean_kl());
    CHECK(bf16.mean_kl() < 1e-3);
    CHECK(bf16.same_argmax() > 0.97);
  }
}

TEST_CASE("f32 compared with itself differs in no bit") {
  const auto s = open_golden(golden_path("qwen-v1-ntk-logn-bf16"), "qwen");
  REQUIRE(s.ok());
  const auto tallies = compare_types(test::shared_device(), s.value(), {{"f32", "f32"}});
  REQUIRE(tallies.ok());
  CHECK(tallies.value().front().max_kl() == 0);
  CHECK(tallies.value().front().greedy_found() == 1);
  CHECK(tallies.value().front().perplexity() == tallies.value().front().reference_perplexity());
}

TEST_CASE("a text runs through the model's own tokenizer, in windows of its context") {
  const std::string folder = golden_path("mistral-tiny-bf16");
  std::string text;
  while (text.size() < 4000)
    text += "A line of words. ";
  const auto s = open_with_text(folder, text);
  REQUIRE(s.ok());
  CHECK(s.value().name == "mistral-tiny-bf16");
  REQUIRE(s.value().sequences.size() > 1);
  CHECK(s.value().sequences.front().ids.front() == 1); // BOS
  for (const token_sequence& sequence : s.value().sequences) {
    CHECK(static_cast<int>(sequence.ids.size()) <= s.value().spec.context_length);
    CHECK(sequence.prompt_length == static_cast<int>(sequence.ids.size()));
  }
}

TEST_CASE("golden folders are found at any depth, in order") {
  const auto found = golden_folders_below(test::golden_dir());
  CHECK(found.size() == test::golden_folders().size() + test::golden_variants().size());
  CHECK(std::is_sorted(found.begin(), found.end()));
  CHECK(golden_folders_below(golden_path("opt-tiny-fp32")).size() == 1);
}

TEST_CASE("tokens that a model cannot run are refused with the reason") {
  const test::temp_folder folder(golden_path("opt-tiny-fp32"));
  const auto refused = [&](const std::string& golden) {
    folder.write("golden.json", golden);
    const auto s = open_golden(folder.path(), "m");
    return s.ok() ? std::string() : s.detail();
  };
  CHECK(refused("{") != "");
  CHECK(refused(R"({"prompts": 1})").find("`prompts` must be a list") != std::string::npos);
  CHECK(refused(R"({"prompts": []})") == "m: there are no tokens to run");
  CHECK(refused(R"({"prompts": [{"ids": [2]}]})").find("`greedy_ids`") != std::string::npos);
  CHECK(refused(R"({"prompts": [{"ids": [2, 704], "greedy_ids": []}]})") ==
        "m: a token id must be below 704, got 704");
  CHECK(refused(R"({"prompts": [{"ids": [2], "greedy_ids": []}]})") ==
        "m: a sequence must have 2 tokens or more, got 1");
  CHECK(refused(R"({"prompts": [{"ids": [], "greedy_ids": [2, 3]}]})") ==
        "m: a prompt must have 1 to 2 tokens, got 0");
  CHECK(refused(R"({"prompts": [{"ids": [2, 5], "greedy_ids": [7]}]})").empty());
}

TEST_CASE("types are pairs, and unknown words are refused") {
  CHECK_FALSE(parse_type_pair("bf16").ok());
  REQUIRE(parse_type_pair("bf16/f16").ok());
  CHECK(parse_type_pair("bf16/f16").value().kv == "f16");
  const auto s = open_golden(golden_path("opt-tiny-fp32"), "opt");
  REQUIRE(s.ok());
  const auto tallies = compare_types(test::shared_device(), s.value(), {{"fp8", "f16"}});
  REQUIRE_FALSE(tallies.ok());
  CHECK(tallies.detail() ==
        "`model.compute` must be auto, f32, f16, bf16, int8 or w8a8, got \"fp8\"");
}

TEST_CASE("tables hold one line per pair, or per model in Markdown") {
  tally t;
  t.add(row{0, 0}, row{0, 0}, 0, true);
  const std::vector<type_pair> pairs = {{"bf16", "f16"}, {"int8", "int8"}};
  const std::string lines = text_lines("m", pairs, {t, t});
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
  CHECK(lines.find("int8/int8") != std::string::npos);
  CHECK(markdown_header(pairs) == "| model | positions | f32 perplexity | bf16 / f16 | int8 / int8 "
                                  "|\n|---|---|---|---|---|\n");
  CHECK(markdown_line("m", {t, t}) == "| m | 1 | 2.0000 | 100.0 %, 0e+00 (0e+00), +0.00 % | "
                                      "100.0 %, 0e+00 (0e+00), +0.00 % |\n");
}
