// The default model compared with its reference: Hugging Face transformers on the dequantised
// weights.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/linear/packed_matrix.hpp"
#include "models/compute.hpp"
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/default_model.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;
using test::id_list;
using test::logit_row;
using twill::value;

namespace {

std::shared_ptr<const model> opened() {
  static const std::shared_ptr<const model> m = [] {
    auto result = open_model(test::default_model_path());
    if (!result.ok()) throw std::runtime_error(result.detail());
    return result.value();
  }();
  return m;
}

value golden(const std::string& name) {
  return test::read_json_file(test::golden_dir() + "/smollm2/" + name);
}

id_list ids(const value& list) {
  id_list out;
  for (const value& v : test::list_of(list))
    out.push_back(static_cast<std::int32_t>(*v.as_int()));
  return out;
}

decoder_options options_for(gpu::compute_type compute, gpu::dtype kv) {
  decoder_options o;
  o.compute = compute;
  o.kv_type = kv;
  o.n_blocks = 300;
  o.max_step_tokens = 256;
  o.max_sequences = 16;
  o.max_logit_rows = 256;
  return o;
}

/// The log softmax of one entry, in double.
double log_probability(const logit_row& row, std::int32_t id) {
  const float largest = *std::max_element(row.begin(), row.end());
  double total = 0;
  for (const float v : row)
    total += std::exp(static_cast<double>(v - largest));
  return static_cast<double>(row[static_cast<std::size_t>(id)] - largest) - std::log(total);
}

/// -log p(ids[t] | ids[:t]) for t = 1.., the sequence run from position 0 in steps of 256.
std::vector<double> token_nll(test::decoder_runner& runner, const id_list& text) {
  std::vector<double> nll;
  for (std::size_t at = 0; at < text.size(); at += 256) {
    const std::size_t end = std::min(text.size(), at + 256);
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    const auto rows =
        runner.step({{0, id_list(begin, text.begin() + static_cast<std::ptrdiff_t>(end)), true}});
    for (std::size_t i = 0; i < rows.size() && at + i + 1 < text.size(); ++i)
      nll.push_back(log_probability(rows[i], text[at + i + 1]));
  }
  runner.release(0);
  for (double& v : nll)
    v = -v;
  return nll;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values)
    sum += v;
  return sum / static_cast<double>(values.size());
}

/// The mean negative log-likelihood for perplexity by llama.cpp's convention: chunks of 512 tokens
/// are run separately, and the second half of each chunk is scored.
double chunked_nll(test::decoder_runner& runner, const id_list& text) {
  std::vector<double> scored;
  for (std::size_t at = 0; at + 512 <= text.size(); at += 512) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    const auto nll = token_nll(runner, id_list(begin, begin + 512));
    scored.insert(scored.end(), nll.begin() + 256, nll.end());
  }
  return mean(scored);
}

/// Runs of all golden prompts at once for 64 tokens each, without end ids, as in the references.
struct greedy_run {
  std::vector<id_list> tokens;
  std::vector<std::vector<logit_row>> first_logits; ///< of the first 8 steps
};

greedy_run run_greedy(test::decoder_runner& runner, const twill::value_list& prompts,
                      const std::vector<token_id>& banned) {
  std::vector<test::chunk> chunks;
  for (std::size_t p = 0; p < prompts.size(); ++p)
    chunks.push_back({static_cast<int>(p), ids(*prompts[p].find("ids"))});
  greedy_run run;
  run.tokens.resize(prompts.size());
  run.first_logits.resize(prompts.size());
  for (int step = 0; step < 64; ++step) {
    auto rows = runner.step(chunks);
    for (std::size_t p = 0; p < prompts.size(); ++p) {
      if (step < 8) run.first_logits[p].push_back(rows[p]);
      for (const token_id id : banned)
        rows[p][static_cast<std::size_t>(id)] = -INFINITY;
      run.tokens[p].push_back(test::argmax(rows[p]));
      chunks[p].ids = {run.tokens[p].back()};
    }
  }
  for (std::size_t p = 0; p < prompts.size(); ++p)
    runner.release(static_cast<int>(p));
  return run;
}

} // namespace

TEST_CASE("the default model opens with its spec, tokenizer and template") {
  const auto m = opened();
  CHECK(m->format == "GGUF v3");
  CHECK(m->quantization == "Q4_1");
  CHECK_FALSE(m->name.empty());
  CHECK(m->spec.n_layers == 30);
  CHECK(m->spec.vocab_size == 49152);
  CHECK(m->spec.context_length == 8192);
  CHECK(m->spec.tied_head);
  CHECK(m->text->vocab_size() == 49152);
  CHECK(m->chat != nullptr);
  const auto& ends = m->text->end_ids();
  CHECK(std::find(ends.begin(), ends.end(), 2) != ends.end());
}

TEST_CASE("SmolLM2 in f32 continues as the reference does, token by token", "[golden]") {
  const value hf = golden("hf.json");
  const auto& prompts = test::list_of(*hf.find("prompts"));
  const auto m = opened();
  test::decoder_runner runner(m->spec, *m->weights,
                              options_for(gpu::compute_type::f32, gpu::dtype::f32));
  const greedy_run run = run_greedy(runner, prompts, m->text->end_ids());
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    CAPTURE(p);
    CHECK(run.tokens[p] == ids(*prompts[p].find("greedy_ids")));
    const auto& top10 = test::list_of(*prompts[p].find("top10"));
    for (std::size_t s = 0; s < top10.size(); ++s) {
      const id_list top = ids(*top10[s].find("ids"));
      const auto& expected = test::list_of(*top10[s].find("logprobs"));
      for (std::size_t k = 0; k < top.size(); ++k)
        CHECK(log_probability(run.first_logits[p][s], top[k]) ==
              Approx(test::number_of(expected[k])).margin(1e-3));
    }
  }
}

TEST_CASE("SmolLM2's perplexity equals the reference in every compute type", "[golden]") {
  const value expected = golden("perplexity.json");
  const id_list text = ids(*expected.find("ids"));
  const auto m = opened();
  const auto automatic =
      resolve_compute("auto", "auto", m->spec, *m->weights, test::shared_device().info());
  REQUIRE(automatic.ok());
  const bool on_gpu = test::shared_device().info().multiplies_f16;
  CHECK(automatic.value().compute == (on_gpu ? gpu::compute_type::bf16 : gpu::compute_type::int8));
  struct precision {
    gpu::compute_type compute;
    gpu::dtype kv;
    double tolerance; ///< relative error of the perplexity
  };
  const auto [compute, kv, tolerance] =
      GENERATE(precision{gpu::compute_type::f32, gpu::dtype::f32, 1e-3},
               precision{gpu::compute_type::int8, gpu::dtype::bf16, 5e-3},
               precision{gpu::compute_type::int8, gpu::dtype::f16, 5e-3},
               precision{gpu::compute_type::w8a8, gpu::dtype::bf16, 1e-2},
               precision{gpu::compute_type::bf16, gpu::dtype::bf16, 5e-3},
               precision{gpu::compute_type::f16, gpu::dtype::f16, 1e-3});
  CAPTURE(gpu::name_of(compute), kv);
  if (compute == gpu::compute_type::f16 && !on_gpu) return; // the host's f16 is slow
  const auto weights = weights_for(compute, m->spec, m->weights, test::shared_device().info());
  test::decoder_runner runner(m->spec, *weights, options_for(compute, kv));
  const double whole = std::exp(mean(token_nll(runner, text)));
  const double chunked = std::exp(chunked_nll(runner, text));
  WARN(gpu::name_of(compute) << " / " << gpu::name_of(kv) << ": perplexity " << whole << " whole, "
                             << chunked << " in chunks");
  CHECK(whole == Approx(test::number_of(*expected.find("hf_full_context_ppl"))).epsilon(tolerance));
  CHECK(chunked ==
        Approx(test::number_of(*expected.find("hf_chunk512_second_half_ppl"))).epsilon(tolerance));
}

TEST_CASE("SmolLM2 in int8 and bf16 keeps close to the reference's greedy tokens", "[golden]") {
  const value hf = golden("hf.json");
  const auto& prompts = test::list_of(*hf.find("prompts"));
  const auto m = opened();
  const auto compute = GENERATE(gpu::compute_type::int8, gpu::compute_type::bf16);
  test::decoder_runner runner(m->spec, *m->weights, options_for(compute, gpu::dtype::bf16));
  const greedy_run run = run_greedy(runner, prompts, m->text->end_ids());
  double same = 0; // tokens before the first difference
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const id_list expected = ids(*prompts[p].find("greedy_ids"));
    const auto differ = std::mismatch(expected.begin(), expected.end(), run.tokens[p].begin());
    same += static_cast<double>(differ.first - expected.begin());
  }
  same /= static_cast<double>(prompts.size());
  WARN(gpu::name_of(compute) << ": " << same << " of 64 greedy tokens before the first difference");
  // On some prompts, the two likeliest early tokens differ by only 0.01 in their logits, and which
  // prompts these are depends on the processor. With int8 compute, 31 tokens on average precede the
  // first difference on processors that multiply bf16, and 23.9 on one with only AVX-512 and VNNI.
  // The tests of KL divergence and perplexity are the strict ones.
  CHECK(same > (test::shared_device().info().isa == "avx512_bf16" ? 24 : 16));
}
