#include "actors/executor/null_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "actors/detail/executor_failure.hpp"
#include "models/model.hpp"
#include "models/offload/plan/serving_plan.hpp"
#include "models/synth/dummy.hpp"

namespace twill::actors {
namespace {

constexpr std::int32_t block_tokens = 16;
constexpr std::int32_t n_blocks = 1 << 16; ///< a million positions, none of which takes memory

/// SplitMix64's finalizer.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Decides when a step is to fail next. It outlives the runners, since each fault ends a runner.
class fault_clock {
public:
  using clock = std::chrono::steady_clock;
  explicit fault_clock(std::chrono::seconds every) : every_(every), due_(clock::now() + every) {}
  /// One thread at a time.
  bool strikes() {
    const auto now = clock::now();
    if (every_.count() == 0 || now < due_) return false;
    due_ = now + every_;
    return true;
  }

private:
  std::chrono::seconds every_;
  clock::time_point due_;
};

/// The state of one such model, which all its runners share.
struct null_model {
  explicit null_model(const config::options& o)
      : options(o), recipe(recipe_of(o)), faults(std::chrono::seconds(recipe.fault_every_s)) {}

  static models::synth::recipe recipe_of(const config::options& o) {
    auto parsed = models::synth::parse_dummy(o.model.path);
    return parsed.ok() ? std::move(parsed).value() : models::synth::recipe{};
  }

  const config::options options;
  const models::synth::recipe recipe;
  fault_clock faults;
};

class null_runner final : public step_runner {
public:
  explicit null_runner(std::shared_ptr<null_model> of)
      : of_(std::move(of)), options_(of_->options) {}

  result<runner_info> load() override {
    auto opened = models::open_model(options_.model.path, options_.model.chat_template);
    if (!opened.ok()) return executor_failure(opened.error());
    runner_info info;
    info.model = std::move(opened).value();
    const models::tokenizer& text = *info.model->text;
    for (std::int32_t id = 0; id < text.vocab_size(); ++id)
      if (!text.is_special(id) && !text.token_bytes(id, false).empty()) words_.push_back(id);
    if (words_.empty())
      return failure{errc::executor_failed, options_.model.path + " has no token with a text"};
    vocab_size_ = info.model->spec.vocab_size;
    hidden_size_ = info.model->spec.embedding_size;
    info.device = "none (dummy:null computes nothing)";
    info.n_blocks = n_blocks;
    info.block_tokens = block_tokens;
    info.max_context_tokens = info.model->spec.context_length;
    const std::int32_t most = options_.scheduler.max_step_tokens;
    info.max_step_tokens = most > 0 ? most : models::offload::default_step_tokens;
    return info;
  }

  result<nothing> run(const executor_step& batch, step_samples& out) override {
    if (of_->recipe.step_us > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(of_->recipe.step_us));
    if (of_->faults.strikes())
      return failure{errc::executor_failed,
                     std::string("a fault that `fault-every` of the model ordered")};
    if (batch.await_masks) batch.await_masks();
    out.tokens.clear();
    out.max_top = 0;
    for (const draw_spec& draw : batch.draws) {
      out.tokens.push_back(token_of(draw));
      out.max_top = std::max(out.max_top, draw.params->logprobs);
    }
    out.logprobs.assign(out.tokens.size(), even_logprob());
    fill_tops(out.tokens, out.max_top, out.top_ids, out.top_logprobs);
    out.score_max_top = 0;
    scored_.clear();
    for (const score_spec& score : batch.scores) {
      scored_.push_back(score.token);
      out.score_max_top = std::max(out.score_max_top, score.n_top);
    }
    out.score_logprobs.assign(scored_.size(), even_logprob());
    fill_tops(scored_, out.score_max_top, out.score_top_ids, out.score_top_logprobs);
    fill_hidden(batch, out);
    return nothing{};
  }

  std::int64_t memory_used_bytes() const override { return 0; }

private:
  float even_logprob() const { return -std::log(static_cast<float>(vocab_size_)); }

  static bool is_banned(const draw_spec& draw, std::int32_t id) {
    return std::any_of(draw.biases.begin(), draw.biases.end(), [&](const gpu::token_bias& b) {
      return b.id == id && b.bias == -std::numeric_limits<float>::infinity();
    });
  }

  std::int32_t token_of(const draw_spec& draw) const {
    const std::uint64_t hash = mixed(mixed(draw.seed) + draw.counter);
    if (draw.mask.empty()) {
      // Each id is banned at most once, so a token that may be drawn is found after at most as many
      // tries as there are bans.
      for (std::size_t i = 0; i < words_.size(); ++i)
        if (const auto id = words_[(hash + i) % words_.size()]; !is_banned(draw, id)) return id;
      return words_.front();
    }
    const auto n = static_cast<std::uint64_t>(vocab_size_);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t id = (hash + i) % n;
      if ((draw.mask[id / 32] >> (id % 32) & 1U) != 0) return static_cast<std::int32_t>(id);
    }
    return words_.front();
  }

  /// Reports the token itself as the most likely, then the ids that follow it.
  void fill_tops(const std::vector<std::int32_t>& tokens, std::int32_t n_top,
                 std::vector<std::int32_t>& ids, std::vector<float>& logprobs) const {
    ids.clear();
    for (const std::int32_t token : tokens)
      for (std::int32_t k = 0; k < n_top; ++k)
        ids.push_back((token + k) % vocab_size_);
    logprobs.assign(ids.size(), even_logprob());
  }

  /// Numbers within [-1, 1) that depend on the row's token alone.
  void fill_hidden(const executor_step& batch, step_samples& out) const {
    out.hidden_size = hidden_size_;
    out.hidden.clear();
    for (auto row = batch.logit_rows.end() - batch.n_hidden; row != batch.logit_rows.end(); ++row) {
      const auto token = static_cast<std::uint64_t>(batch.tokens[static_cast<std::size_t>(*row)]);
      for (std::int32_t i = 0; i < hidden_size_; ++i)
        out.hidden.push_back(
            static_cast<float>(mixed(mixed(token) + static_cast<std::uint64_t>(i)) >> 40) /
                static_cast<float>(1 << 23) -
            1.0f);
    }
  }

  std::shared_ptr<null_model> of_;
  const config::options& options_;
  std::vector<std::int32_t> words_; ///< ids that are drawn when there is no mask
  std::vector<std::int32_t> scored_;
  std::int32_t vocab_size_ = 0;
  std::int32_t hidden_size_ = 0;
};

} // namespace

bool computes_nothing(std::string_view model_path) {
  constexpr std::string_view name = "dummy:null";
  return model_path.starts_with(name) &&
         (model_path.size() == name.size() || model_path[name.size()] == '?');
}

runner_factory make_null_runners(const config::options& options) {
  return [model = std::make_shared<null_model>(options)] {
    return std::make_unique<null_runner>(model);
  };
}

} // namespace twill::actors
