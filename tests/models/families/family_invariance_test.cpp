// For every family, neither the batch, the chunks into which a prompt is split, the size of KV
// blocks nor a shared prefix changes a bit of a request's logits.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "models/compute.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;

namespace {

constexpr std::size_t n_new = 6;

/// A prompt and the greedy tokens that it gets when it runs alone, with a prefill of one step.
struct solo {
  id_list prompt, greedy;
  logit_row last;
};

solo run_alone(decoder_runner& runner, const id_list& prompt) {
  solo s;
  s.prompt = prompt;
  logit_row logits = runner.step({{0, prompt}}).front();
  for (std::size_t i = 0; i < n_new; ++i) {
    s.greedy.push_back(argmax(logits));
    logits = runner.step({{0, {s.greedy.back()}}}).front();
  }
  s.last = logits;
  runner.release(0);
  return s;
}

/// Runs all prompts at once: random arrivals, random chunks, decodes beside prefills.
class shuffled_run {
public:
  shuffled_run(decoder_runner& runner, const std::vector<solo>& wanted, unsigned seed)
      : runner_(runner), wanted_(wanted), random_(seed), done_(wanted.size(), 0) {}

  /// Lets sequence `s` begin with blocks that another sequence computed.
  void begin_shared(std::size_t s, int lender, std::size_t n_blocks, std::size_t n_tokens) {
    runner_.share_prefix(lender, static_cast<int>(s), n_blocks,
                         static_cast<int>(wanted_[s].prompt.size()));
    done_[s] = n_tokens;
  }

  void run() {
    while (true) {
      std::vector<chunk> step;
      std::vector<std::size_t> who;
      for (std::size_t s = 0; s < wanted_.size(); ++s) {
        if (total(s) == done_[s] || random_() % 3 == 0) continue;
        step.push_back(next_chunk(s));
        who.push_back(s);
      }
      if (finished()) return;
      if (step.empty()) continue;
      const auto rows = runner_.step(step);
      for (std::size_t i = 0; i < who.size(); ++i)
        check(who[i], step[i].ids.size(), rows[i]);
    }
  }

private:
  std::size_t total(std::size_t s) const { return wanted_[s].prompt.size() + n_new; }
  bool finished() const {
    for (std::size_t s = 0; s < wanted_.size(); ++s)
      if (done_[s] != total(s)) return false;
    return true;
  }
  chunk next_chunk(std::size_t s) {
    const solo& w = wanted_[s];
    const std::size_t at = done_[s], n = w.prompt.size();
    const auto prompt = static_cast<int>(n);
    if (at >= n) return {static_cast<int>(s), {w.greedy[at - n]}, false, prompt};
    const std::size_t size = 1 + random_() % std::min<std::size_t>(n - at, 40);
    const auto begin = w.prompt.begin() + static_cast<std::ptrdiff_t>(at);
    return {static_cast<int>(s), id_list(begin, begin + static_cast<std::ptrdiff_t>(size)), false,
            prompt};
  }
  void check(std::size_t s, std::size_t size, const logit_row& row) {
    const solo& w = wanted_[s];
    done_[s] += size;
    const std::size_t n = w.prompt.size();
    if (done_[s] >= n && done_[s] < n + n_new) CHECK(argmax(row) == w.greedy[done_[s] - n]);
    if (done_[s] == n + n_new) CHECK(row == w.last);
  }

  decoder_runner& runner_;
  const std::vector<solo>& wanted_;
  std::mt19937 random_;
  std::vector<std::size_t> done_;
};

} // namespace

TEST_CASE("batching, chunks, block sizes and shared prefixes change no bit, for every family") {
  for (const std::string& name : golden_folders()) {
    CAPTURE(name);
    const golden_folder c(name);
    std::vector<solo> wanted;
    {
      decoder_runner runner(c.spec, *c.weights, golden_options());
      for (const golden_prompt& p : c.prompts)
        wanted.push_back(run_alone(runner, p.ids));
    }
    unsigned seed = 1;
    for (const std::int32_t block_tokens : {1, 3, 16, 64}) {
      CAPTURE(block_tokens);
      auto options = golden_options();
      options.block_tokens = block_tokens;
      options.n_blocks = 3000 / block_tokens;
      decoder_runner runner(c.spec, *c.weights, options);
      shuffled_run run(runner, wanted, seed++);
      // The longest prompt shares its first blocks with a sequence that ran before.
      const solo& longest = wanted[3];
      const int lender = 100;
      runner.prefill(lender, longest.prompt, 7);
      const std::size_t blocks =
          (longest.prompt.size() - 1) / static_cast<std::size_t>(block_tokens);
      run.begin_shared(3, lender, blocks, blocks * static_cast<std::size_t>(block_tokens));
      run.run();
    }
  }
}

TEST_CASE("other compute types and eight-bit KV do not depend on the batch either") {
  for (const std::string& name : golden_folders()) {
    CAPTURE(name);
    const golden_folder c(name);
    for (const auto& [compute, kv] : {std::pair(gpu::compute_type::bf16, gpu::dtype::bf16),
                                      std::pair(gpu::compute_type::int8, gpu::dtype::i8),
                                      std::pair(gpu::compute_type::w8a8, gpu::dtype::f16)}) {
      const auto weights = weights_for(compute, c.spec, c.weights, shared_device().info());
      decoder_runner runner(c.spec, *weights, golden_options(compute, kv));
      std::vector<solo> wanted;
      for (const golden_prompt& p : c.prompts)
        wanted.push_back(run_alone(runner, p.ids));
      shuffled_run(runner, wanted, 9).run();
    }
  }
}
