// The hidden states that a decoder returns are the inputs of its LM head: multiplied in double with
// the head's weights from the file, they give the logits, for every family.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/support/worse.hpp"

using namespace twill;
using namespace twill::test;

namespace {

/// The head's weights, row by row, as the logits' definition has them. // (vocab_size, size)
std::vector<float> head_of(const golden_folder& c) {
  const auto& name = c.spec.tied_head ? c.spec.names.embedding : c.spec.names.head;
  auto weights = c.weights->vector(name).value();
  if (!c.spec.normalised_head) return weights;
  const auto size = static_cast<std::size_t>(c.spec.embedding_size);
  for (std::size_t row = 0; row < weights.size(); row += size) {
    double sum = 0;
    for (std::size_t i = row; i < row + size; ++i)
      sum += double{weights[i]} * double{weights[i]};
    for (std::size_t i = row; i < row + size; ++i)
      weights[i] = static_cast<float>(double{weights[i]} / std::sqrt(sum));
  }
  return weights;
}

logit_row product(const std::vector<float>& head, const logit_row& hidden) {
  logit_row logits;
  for (std::size_t row = 0; row < head.size(); row += hidden.size()) {
    double sum = 0;
    for (std::size_t i = 0; i < hidden.size(); ++i)
      sum += double{head[row + i]} * double{hidden[i]};
    logits.push_back(static_cast<float>(sum));
  }
  return logits;
}

} // namespace

TEST_CASE("hidden states give the logits that the head gives", "[golden]") {
  auto names = golden_folders();
  names.insert(names.end(), golden_variants().begin(), golden_variants().end());
  for (const std::string& name : names)
    DYNAMIC_SECTION(name) {
      const golden_folder c(name);
      const auto head = head_of(c);
      decoder_runner runner(c.spec, *c.weights, golden_options());
      const double tolerance = c.tolerance("float32_compute_logit_abs");
      for (const golden_prompt& prompt : c.prompts) {
        const auto n = static_cast<std::int32_t>(prompt.ids.size());
        const auto hidden = runner.step_with_hidden({{0, prompt.ids, true}}, n);
        REQUIRE(hidden.size() == prompt.ids.size());
        REQUIRE(hidden.back().size() == static_cast<std::size_t>(c.spec.embedding_size));
        CHECK(largest_difference(product(head, hidden.back()), prompt.last_logits) < tolerance);
        double worst = 0;
        for (std::size_t t = 0; t < hidden.size(); ++t) {
          const auto logits = product(head, hidden[t]);
          for (const auto& [id, logit] : prompt.top[t])
            worst = twill::test::worse(
                worst, std::abs(double{logits[static_cast<std::size_t>(id)]} - logit));
        }
        CHECK(worst < tolerance);
        runner.release(0);
      }
    }
}

namespace {

double largest_of_units(const std::vector<double>& a, const std::vector<float>& b) {
  double lengths[2] = {0, 0}, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    lengths[0] += a[i] * a[i];
    lengths[1] += double{b[i]} * double{b[i]};
  }
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = twill::test::worse(
        largest, std::abs(a[i] / std::sqrt(lengths[0]) - double{b[i]} / std::sqrt(lengths[1])));
  return a.size() == b.size() ? largest : INFINITY;
}

} // namespace

TEST_CASE("hidden states of variants are those of transformers", "[golden]") {
  for (const char* name : {"variants/llama-dynamic", "variants/llama-wide-heads",
                           "variants/opt-post-norm", "variants/opt-no-final-norm",
                           "variants/qwen2-tied", "variants/qwen2-windows", "variants/qwen3"})
    DYNAMIC_SECTION(name) {
      const golden_folder c(name);
      const auto wanted =
          read_f32_tensors(golden_dir() + "/" + name + "/golden.hidden.safetensors");
      decoder_runner runner(c.spec, *c.weights, golden_options());
      for (std::size_t i = 0; i < c.prompts.size(); ++i) {
        const auto& ids = c.prompts[i].ids;
        const auto rows =
            runner.step_with_hidden({{0, ids, true}}, static_cast<std::int32_t>(ids.size()));
        runner.release(0);
        std::vector<double> mean(rows.back().size());
        for (const auto& row : rows)
          for (std::size_t k = 0; k < row.size(); ++k)
            mean[k] += double{row[k]};
        const std::string key = "p" + std::to_string(i);
        const std::vector<double> last(rows.back().begin(), rows.back().end());
        CHECK(largest_of_units(last, wanted.at(key + ".last")) < 1e-4);
        CHECK(largest_of_units(mean, wanted.at(key + ".mean")) < 1e-4);
      }
    }
}

TEST_CASE("rows of logits and of hidden states share a step, with the bits of steps of their own",
          "[golden]") {
  for (const char* name : {"llama-tiny-fp16", "opt-350m-style-fp16", "baichuan2-7b-tiny-fp16"}) {
    CAPTURE(name);
    const golden_folder c(name);
    decoder_runner runner(c.spec, *c.weights, golden_options());
    const auto &p = c.prompts.at(1).ids, &q = c.prompts.at(2).ids;
    const auto n = static_cast<std::int32_t>(q.size());
    const auto logits = runner.step({{0, p}});
    const auto hidden = runner.step_with_hidden({{1, q, true}}, n);
    runner.release(0);
    runner.release(1);
    const auto both = runner.step_with_hidden({{2, p}, {3, q, true}}, n);
    REQUIRE(both.size() == 1 + q.size());
    CHECK(both.front() == logits.front());
    CHECK(std::equal(hidden.begin(), hidden.end(), both.begin() + 1));
  }
}
