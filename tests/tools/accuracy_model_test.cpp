// `twill-bench accuracy` on the real default model: its text gives the reference's perplexity.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/catch.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/default_model.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"
#include "tools/twill-bench/accuracy/candidate.hpp"
#include "tools/twill-bench/accuracy/compare.hpp"

using namespace twill::bench;
namespace test = twill::test;

TEST_CASE("SmolLM2 over the golden text has the reference's tokens and perplexity", "[golden]") {
  const std::string folder = test::golden_dir() + "/smollm2";
  std::ifstream in(folder + "/ppl_text.txt", std::ios::binary);
  REQUIRE(in);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto s = open_with_text(test::default_model_path(), text);
  REQUIRE(s.ok());
  const twill::value golden = test::read_json_file(folder + "/perplexity.json");
  REQUIRE(s.value().sequences.size() == 1);
  const auto& ids = test::list_of(*golden.find("ids"));
  REQUIRE(s.value().sequences.front().ids.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    REQUIRE(s.value().sequences.front().ids[i] == *ids[i].as_int());

  const auto tallies =
      compare_types(test::shared_device(), s.value(), {{"int8", "f16"}, {"w8a8", "f16"}});
  REQUIRE(tallies.ok());
  const tally& t = tallies.value().front();
  CHECK(t.positions() == static_cast<std::int64_t>(ids.size()) - 1);
  CHECK(t.reference_perplexity() ==
        Approx(test::number_of(*golden.find("hf_full_context_ppl"))).epsilon(1e-4));
  CHECK(t.perplexity() == Approx(t.reference_perplexity()).epsilon(5e-3));
  CHECK(t.same_argmax() > 0.95);
  CHECK(t.mean_kl() < 0.01);
  const tally& rounded = tallies.value().back();
  CHECK(rounded.perplexity() == Approx(rounded.reference_perplexity()).epsilon(0.01));
  // On a GPU more columns of activations share a scale: a simulation in f32 gave 95.1 % and 0.0154.
  const bool on_gpu = test::shared_device().info().multiplies_f16;
  CHECK(rounded.same_argmax() > (on_gpu ? 0.94 : 0.95));
  CHECK(rounded.mean_kl() < (on_gpu ? 0.025 : 0.015));
}
