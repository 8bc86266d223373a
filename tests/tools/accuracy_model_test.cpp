// `twill-bench accuracy` on the real default model: its text gives the reference's perplexity.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/catch.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/default_model.hpp"
#include "tests/support/json.hpp"
#include "tools/twill-bench/accuracy/compare.hpp"
#include "tools/twill-bench/accuracy/subject.hpp"

using namespace twill::bench;
namespace test = twill::test;

namespace {

/// The golden text's first `n_tokens` tokens in f32, int8 and w8a8, beside the reference's losses.
void check_text(std::size_t n_tokens) {
  const std::string folder = std::string(TWILL_GOLDEN_DIR) + "/smollm2";
  std::ifstream in(folder + "/ppl_text.txt", std::ios::binary);
  REQUIRE(in);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto s = open_with_text(test::default_model_path(), text);
  REQUIRE(s.ok());
  const twill::value golden = test::read_json_file(folder + "/perplexity.json");
  REQUIRE(s.value().sequences.size() == 1);
  auto& ids = s.value().sequences.front().ids;
  const auto& expected = test::list_of(*golden.find("ids"));
  REQUIRE(ids.size() == expected.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    REQUIRE(ids[i] == *expected[i].as_int());
  n_tokens = std::min(n_tokens, ids.size());
  ids.resize(n_tokens);
  const auto& losses = test::list_of(*golden.find("hf_token_nll_full_context"));
  double total = 0;
  for (std::size_t i = 0; i + 1 < n_tokens; ++i)
    total += test::number_of(losses[i]);

  const auto tallies =
      compare_types(test::shared_device(), s.value(), {{"int8", "f16"}, {"w8a8", "f16"}});
  REQUIRE(tallies.ok());
  const tally& t = tallies.value().front();
  CHECK(t.positions() == static_cast<std::int64_t>(n_tokens) - 1);
  CHECK(t.reference_perplexity() ==
        Approx(std::exp(total / static_cast<double>(n_tokens - 1))).epsilon(1e-4));
  const double agreeing = n_tokens == expected.size() ? 0.95 : 0.94;
  // The tolerances are for the whole text; the error of a mean falls with the root of its length.
  const double wider =
      std::sqrt(static_cast<double>(expected.size()) / static_cast<double>(n_tokens));
  CHECK(t.perplexity() == Approx(t.reference_perplexity()).epsilon(wider * 5e-3));
  CHECK(t.same_argmax() > agreeing);
  CHECK(t.mean_kl() < 0.01);
  const tally& rounded = tallies.value().back();
  CHECK(rounded.perplexity() == Approx(rounded.reference_perplexity()).epsilon(wider * 0.01));
  CHECK(rounded.same_argmax() > agreeing);
  CHECK(rounded.mean_kl() < 0.015);
}

} // namespace

TEST_CASE("SmolLM2 over the golden text has the reference's tokens and perplexity", "[golden]") {
  check_text(1280);
}

TEST_CASE("SmolLM2 over the whole golden text has the reference's perplexity", "[golden][long]") {
  check_text(static_cast<std::size_t>(-1));
}
