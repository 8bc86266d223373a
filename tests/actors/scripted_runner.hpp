// A step_runner whose "model" the test can recompute: the next token is a hash of everything that
// the sequence's KV holds, read through the block table. A wrong block table, a block with two
// owners or a lost position changes the text. The file also has a tokenizer of bytes and a recorder
// of events.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/engine/caf_engine.hpp"
#include "actors/executor/step_runner.hpp"
#include "models/model.hpp"
#include "models/offload/plan/serving_plan.hpp"
#include "models/offload/streams/disk_store.hpp"

namespace scripted {

using namespace twill;
using namespace std::chrono_literals;

constexpr std::int32_t eos = 256;
constexpr auto patience = 20s; ///< the longest wait of any test

/// Ids 0..255 are bytes, 256 ends a sequence.
class byte_tokenizer final : public models::tokenizer {
public:
  models::result<std::vector<models::token_id>>
  encode(std::string_view text, const models::encode_options&) const override {
    std::vector<models::token_id> ids;
    for (unsigned char c : text)
      ids.push_back(c);
    return ids;
  }
  models::result<std::vector<models::token_id>>
  encode_prompt(std::string_view text, const models::byte_ranges&) const override {
    return encode(text, {});
  }
  std::string token_bytes(models::token_id id, bool special) const override {
    if (id == eos) return special ? "<eos>" : "";
    return id >= 0 && id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
  }
  std::int32_t vocab_size() const override { return 257; }
  bool is_special(models::token_id id) const override { return id == eos; }
  const std::vector<models::token_id>& end_ids() const override { return ends_; }
  models::token_id bos_id() const override { return -1; }
  models::token_id eos_id() const override { return eos; }
  std::string kind() const override { return "bytes"; }

private:
  std::vector<models::token_id> ends_{eos};
};

inline std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdULL;
}

/// Returns the next token, which with a temperature also depends on the seed and the counter.
inline std::int32_t next_token(std::uint64_t context_hash, float temperature, std::uint64_t seed,
                               std::uint64_t counter, bool may_end) {
  std::uint64_t h = context_hash;
  if (temperature > 0) h = mix(mix(h, seed), counter);
  h ^= h >> 29;
  if (may_end && h % 37 == 0) return eos;
  return 'a' + static_cast<std::int32_t>((h >> 8) % 26);
}

/// The value that is stored as the KV of a position. It holds the token and, if `length` is larger
/// than `shareable` (0: no bound), also `length`, which is the length of the prompt or of the
/// sequence up to the position, whichever is longer. It stands for models whose RoPE frequencies
/// depend on this length.
inline std::int32_t stored(std::int32_t token, std::int32_t position, std::int32_t prompt_length,
                           std::int32_t shareable) {
  const std::int32_t length = std::max(prompt_length, position + 1);
  return shareable > 0 && length > shareable ? token + 1000 * length : token;
}

inline std::uint64_t hash_of(const std::vector<std::int32_t>& tokens, std::int32_t prompt_length,
                             std::int32_t shareable) {
  std::uint64_t h = 1;
  for (std::size_t p = 0; p < tokens.size(); ++p)
    h = mix(h, static_cast<std::uint64_t>(
                   stored(tokens[p], static_cast<std::int32_t>(p), prompt_length, shareable)));
  return h;
}

/// The log-probability of `token` after the tokens whose hash is `context_hash`.
inline float score_of(std::uint64_t context_hash, std::int32_t token) {
  const std::uint64_t h = mix(context_hash, static_cast<std::uint64_t>(token));
  return -static_cast<float>((h >> 20) % 4096) / 256.0f;
}

struct solo_result {
  std::string text;
  bool stopped = false;
  std::int32_t n_tokens = 0;
};

/// The output that a request must have, whatever other requests run.
inline solo_result solo(const std::string& prompt, std::int32_t max_tokens, float temperature = 0,
                        std::uint64_t seed = 0, std::int32_t min_tokens = 0,
                        bool ignore_eos = false, std::int32_t shareable = 0) {
  std::vector<std::int32_t> tokens;
  for (unsigned char c : prompt)
    tokens.push_back(c);
  solo_result out;
  while (out.n_tokens < max_tokens) {
    const bool may_end = out.n_tokens >= min_tokens;
    const auto h = hash_of(tokens, static_cast<std::int32_t>(prompt.size()), shareable);
    const std::int32_t t = next_token(h, temperature, seed, tokens.size(), may_end);
    ++out.n_tokens;
    tokens.push_back(t);
    if (t == eos) {
      if (!ignore_eos) {
        out.stopped = true;
        return out;
      }
      continue;
    }
    out.text += static_cast<char>(t);
  }
  return out;
}

/// The behavior of runners. A script is shared with the test and kept over restarts.
struct script {
  std::int32_t n_blocks = 64;
  std::int32_t block_tokens = 4;
  std::int32_t max_context = 200;
  std::int32_t shareable_length = 0;
  models::offload::store_opener open_kv_store; ///< see start_engine_with()
  std::atomic<std::int64_t> blocks_saved{0}, blocks_loaded{0};
  std::atomic<int> loads{0};
  std::atomic<int> failing_loads{0}; ///< how many more loads fail
  std::atomic<std::int64_t> steps{0};
  std::atomic<std::int64_t> computed{0}; ///< tokens that were computed, over all steps
  std::atomic<std::int64_t> fail_at{-1}; ///< the number of the step that fails
  std::atomic<bool> fail_by_throw{false};
  std::atomic<bool> fail_always{false};
  std::atomic<bool> lost{false};         ///< a step that fails has lost the device
  std::atomic<bool> lost_by_load{false}; ///< a load that fails has lost the device
  std::atomic<int> delay_us{0};
  std::atomic<std::size_t> widest{0};     ///< most sequences in one step
  std::atomic<bool> weighs_counts{false}; ///< tokens depend on the counts for penalties
  /// Steps begin and end in separate calls; ctest's cuda_run_ahead sets this in every test.
  bool ahead = std::getenv("TWILL_TEST_RUNS_AHEAD") != nullptr;
  std::atomic<std::int64_t> steps_ahead{0}; ///< steps that began before their predecessor ended
  std::atomic<std::int64_t> fed_rows{0};    ///< rows with a token of that predecessor

  /// Steps wait for allow() from now on. Without hold(), steps never wait.
  void hold() {
    const std::lock_guard lock(mutex);
    held = true;
  }
  void allow(std::int64_t n) {
    const std::lock_guard lock(mutex);
    allowed += n;
    changed.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex);
    held = false;
    changed.notify_all();
  }
  bool enter() {
    std::unique_lock lock(mutex);
    waiting = true;
    changed.notify_all();
    const bool in_time = changed.wait_for(lock, patience, [&] { return !held || allowed > 0; });
    waiting = false;
    if (held) --allowed;
    return in_time;
  }
  void delay() const {
    if (const int us = delay_us; us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
  /// Waits until a step waits for allow(), but no longer than `limit`.
  bool step_waits(std::chrono::milliseconds limit = patience) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, limit, [&] { return waiting && allowed <= 0; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  bool waiting = false;
  std::int64_t allowed = 0;
};

class runner final : public actors::step_runner {
public:
  explicit runner(std::shared_ptr<script> s) : script_(std::move(s)) {}

  actors::result<actors::runner_info> load() override {
    script_->loads += 1;
    if (script_->failing_loads.load() > 0) {
      script_->failing_loads -= 1;
      if (script_->lost_by_load) script_->lost = true;
      return failure{actors::errc::executor_failed, "scripted load failure"};
    }
    kv_.assign(static_cast<std::size_t>(script_->n_blocks * script_->block_tokens), -1);
    auto model = std::make_shared<models::model>();
    model->name = "scripted";
    model->other_names = {"script"};
    model->text = std::make_shared<byte_tokenizer>();
    model->spec.vocab_size = 257;
    actors::runner_info info;
    info.model = model;
    info.device = "script";
    info.n_blocks = script_->n_blocks;
    info.block_tokens = script_->block_tokens;
    info.max_context_tokens = script_->max_context;
    info.max_step_tokens = models::offload::default_step_tokens;
    info.shareable_length = script_->shareable_length;
    info.kv_block_bytes = script_->block_tokens * 4;
    info.memory_used_bytes = info.kv_block_bytes * info.n_blocks;
    info.fingerprint = "script";
    info.runs_ahead = script_->ahead;
    return info;
  }

  /// Computes the step at once. Another thread reports the step's end or its failure, once all
  /// earlier steps have ended and the test has allowed the end by script::allow().
  actors::result<nothing> begin(const actors::executor_step& batch,
                                std::function<void()> done) override {
    if (under_way_.size() > 1) return failure{actors::errc::executor_failed, "three at once"};
    if (!under_way_.empty()) script_->steps_ahead += 1;
    actors::executor_step known = batch;
    for (std::size_t i = 0; i < batch.fed_from.size(); ++i) {
      if (batch.fed_from[i] < 0) continue;
      known.tokens.at(i) = drawn_.at(static_cast<std::size_t>(batch.fed_from[i]));
      script_->fed_rows += 1;
    }
    step_under_way step;
    try {
      step.outcome = compute(known, step.samples);
    } catch (const std::exception& e) {
      step.outcome = failure{actors::errc::executor_failed, std::string(e.what())};
    }
    drawn_ = step.samples.tokens;
    drawn_.resize(batch.draws.size()); // a failed step has fewer tokens
    const auto before = under_way_.empty() ? std::shared_future<bool>() : under_way_.back().end;
    step.end = std::async(std::launch::async, [before, plan = script_, done = std::move(done)] {
      if (before.valid()) before.wait();
      const bool in_time = plan->enter();
      plan->delay();
      done();
      return in_time;
    });
    under_way_.push_back(std::move(step));
    return nothing{};
  }
  actors::result<nothing> end(actors::step_samples& out) override {
    const step_under_way step = std::move(under_way_.front());
    under_way_.pop_front();
    if (!step.end.get()) return failure{actors::errc::executor_failed, "the gate stayed shut"};
    out = step.samples;
    return step.outcome;
  }
  actors::result<nothing> run(const actors::executor_step& batch,
                              actors::step_samples& out) override {
    if (!script_->enter()) return failure{actors::errc::executor_failed, "the gate stayed shut"};
    script_->delay();
    return compute(batch, out);
  }

  std::int64_t memory_used_bytes() const override { return 4096; }
  bool device_is_lost() override { return script_->lost; }

  actors::result<nothing> save_block(std::int32_t block, void* to) override {
    script_->blocks_saved += 1;
    std::memcpy(to, block_at(block), static_cast<std::size_t>(script_->block_tokens) * 4);
    return nothing{};
  }
  actors::result<nothing> load_block(std::int32_t block, const void* from) override {
    script_->blocks_loaded += 1;
    std::memcpy(block_at(block), from, static_cast<std::size_t>(script_->block_tokens) * 4);
    return nothing{};
  }

private:
  actors::result<nothing> compute(const actors::executor_step& batch, actors::step_samples& out) {
    const std::int64_t step = script_->steps.fetch_add(1);
    if (step == script_->fail_at || script_->fail_always) {
      if (script_->fail_by_throw) throw std::runtime_error("scripted exception");
      return failure{actors::errc::executor_failed, "scripted step failure"};
    }
    if (batch.kv_lengths.size() > script_->widest) script_->widest = batch.kv_lengths.size();
    for (std::size_t s = 0; s < batch.kv_lengths.size(); ++s)
      for (std::int32_t r = batch.first_token[s]; r < batch.first_token[s + 1]; ++r)
        write(batch, s, static_cast<std::size_t>(r));
    script_->computed += static_cast<std::int64_t>(batch.tokens.size());
    if (batch.await_masks) batch.await_masks();
    out.tokens.clear();
    out.logprobs.clear();
    out.max_top = 0;
    for (const auto& d : batch.draws)
      out.max_top = std::max(out.max_top, d.params->logprobs);
    out.top_ids.clear();
    out.top_logprobs.clear();
    std::size_t s = 0;
    for (std::size_t d = 0; d < batch.draws.size(); ++d) {
      while (batch.first_token[s + 1] <= batch.logit_rows[d])
        ++s;
      std::uint64_t h = 1;
      for (std::int32_t p = 0; p < batch.kv_lengths[s]; ++p)
        h = mix(h, static_cast<std::uint64_t>(at(batch, s, p)));
      out.tokens.push_back(draw(h, batch.draws[d]));
      out.logprobs.push_back(score_of(h, out.tokens.back()));
      for (std::int32_t k = 0; k < out.max_top; ++k) {
        out.top_ids.push_back(static_cast<std::int32_t>(h >> (8 * k) & 255));
        out.top_logprobs.push_back(score_of(h, out.top_ids.back()));
      }
    }
    score(batch, out);
    return nothing{};
  }
  std::int32_t& at(const actors::executor_step& batch, std::size_t s, std::int32_t position) {
    const auto column = static_cast<std::size_t>(position / script_->block_tokens);
    const std::int32_t block =
        batch.block_table.at(s * static_cast<std::size_t>(batch.max_blocks) + column);
    return kv_.at(
        static_cast<std::size_t>(block * script_->block_tokens + position % script_->block_tokens));
  }
  std::int32_t* block_at(std::int32_t block) {
    return &kv_.at(static_cast<std::size_t>(block * script_->block_tokens));
  }
  void write(const actors::executor_step& batch, std::size_t s, std::size_t row) {
    const std::int32_t position = batch.positions[row];
    at(batch, s, position) =
        stored(batch.tokens[row], position, batch.prompt_lengths[s], script_->shareable_length);
  }
  std::int32_t draw(std::uint64_t h, const actors::draw_spec& d) const {
    if (script_->weighs_counts)
      for (const auto& c : d.counts)
        h = mix(h, static_cast<std::uint64_t>((c.id * 1000 + c.in_prompt) * 1000 + c.in_output));
    if (!d.mask.empty()) return allowed_token(d, mix(mix(h, d.seed), d.counter));
    auto token = next_token(h, d.params->temperature, d.seed, d.counter, !is_banned(d, eos));
    for (int tried = 0; tried < 26 && is_banned(d, token); ++tried)
      token = 'a' + (token - 'a' + 1) % 26;
    return token;
  }
  static bool is_banned(const actors::draw_spec& d, std::int32_t id) {
    return std::any_of(d.biases.begin(), d.biases.end(),
                       [id](const auto& b) { return b.id == id && b.bias < -1e30f; });
  }

  /// A token that the mask and the bans allow; the end as soon as it is allowed.
  static std::int32_t allowed_token(const actors::draw_spec& d, std::uint64_t h) {
    std::vector<std::int32_t> left;
    for (std::int32_t id = 0; id <= eos; ++id) {
      const bool may = (d.mask[static_cast<std::size_t>(id / 32)] >> (id % 32) & 1) != 0;
      if (may && !is_banned(d, id)) left.push_back(id);
    }
    if (left.empty()) return 0;
    return left.back() == eos ? eos : left[(h >> 8) % left.size()];
  }
  void score(const actors::executor_step& batch, actors::step_samples& out) {
    const std::size_t n = batch.scores.size();
    out.score_logprobs.clear();
    out.score_max_top = 0;
    for (const auto& s : batch.scores)
      out.score_max_top = std::max(out.score_max_top, s.n_top);
    const auto width = static_cast<std::size_t>(out.score_max_top);
    out.score_top_ids.assign(n * width, 'x');
    out.score_top_logprobs.assign(n * width, -3.0f);
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t row = batch.logit_rows.at(batch.draws.size() + i);
      std::size_t s = 0;
      while (batch.first_token[s + 1] <= row)
        ++s;
      std::uint64_t h = 1;
      for (std::int32_t p = 0; p <= batch.positions[static_cast<std::size_t>(row)]; ++p)
        h = mix(h, static_cast<std::uint64_t>(at(batch, s, p)));
      out.score_logprobs.push_back(score_of(h, batch.scores[i].token));
    }
  }

  struct step_under_way {
    actors::step_samples samples;
    actors::result<nothing> outcome = nothing{};
    std::shared_future<bool> end;
  };

  std::shared_ptr<script> script_;
  std::vector<std::int32_t> kv_;
  std::vector<std::int32_t> drawn_; ///< tokens of the step begun last
  std::deque<step_under_way> under_way_;
};

inline actors::runner_factory runners(std::shared_ptr<script> s) {
  return [s]() -> std::unique_ptr<actors::step_runner> { return std::make_unique<runner>(s); };
}

/// Polls until `done` returns true; false if `patience` is over first.
template <class F>
bool eventually(F&& done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// Records the events of one request and checks their order.
class recorder {
public:
  struct choice {
    std::string text;
    std::vector<std::int32_t> ids;
    std::optional<actors::finish_reason> finish;
    std::string stop_string;
    std::int32_t stop_token = -1;
  };

private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    choice choices[16];
    std::vector<std::int32_t> prompt_ids;
    std::vector<actors::token_output> scores;
    std::optional<actors::request_error> error;
    actors::usage use;
    std::size_t n_events = 0;
    bool started = false;
    bool over = false;
    std::string broken;
  };
  template <class F>
  auto locked(F&& read) const {
    const std::lock_guard lock(state_->mutex);
    return read(*state_);
  }
  template <class F>
  bool wait(F&& done) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, patience, [&] { return done(*state_); });
  }

public:
  actors::event_callback callback() {
    return [state = state_](actors::event e) {
      const std::lock_guard lock(state->mutex);
      if (state->over) state->broken = "an event after the last";
      if (e.started) {
        if (state->started) state->broken = "started twice";
        state->started = true;
        state->prompt_ids = e.prompt_ids;
        state->scores = e.prompt_scores;
      } else if (!e.error && !state->started) {
        state->broken = "an event before started";
      }
      auto& c = state->choices[static_cast<std::size_t>(e.choice)];
      if (c.finish && (!e.tokens.empty() || !e.text.empty()))
        state->broken = "a token after the choice's finish";
      for (const auto& t : e.tokens)
        c.ids.push_back(t.chosen.id);
      c.text += e.text;
      if (e.finish) {
        c.finish = e.finish;
        c.stop_string = e.stop_string;
        c.stop_token = e.stop_token;
      }
      if (e.error) state->error = e.error;
      if (e.error && !e.last) state->broken = "an error that is not the last event";
      state->use = e.use;
      state->n_events += 1;
      state->over = e.last;
      state->changed.notify_all();
    };
  }

  bool wait_over() {
    return wait([](const state& s) { return s.over; });
  }
  bool wait_tokens(std::size_t n) {
    return wait([n](const state& s) { return s.choices[0].ids.size() >= n; });
  }
  bool over() const {
    return locked([](const state& s) { return s.over; });
  }
  std::size_t n_events() const {
    return locked([](const state& s) { return s.n_events; });
  }
  std::size_t n_tokens() const {
    return locked([](const state& s) { return s.choices[0].ids.size(); });
  }
  std::string broken() const {
    return locked([](const state& s) { return s.broken; });
  }
  choice result(std::size_t i = 0) const {
    return locked([i](const state& s) { return s.choices[i]; });
  }
  std::string text(std::size_t i = 0) const { return result(i).text; }
  std::optional<actors::request_error> error() const {
    return locked([](const state& s) { return s.error; });
  }
  actors::usage use() const {
    return locked([](const state& s) { return s.use; });
  }
  std::vector<actors::token_output> scores() const {
    return locked([](const state& s) { return s.scores; });
  }
  std::vector<std::int32_t> prompt_ids() const {
    return locked([](const state& s) { return s.prompt_ids; });
  }

private:
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

inline actors::request text_request(const std::string& prompt, std::int32_t max_tokens,
                                    float temperature = 0) {
  actors::request r;
  r.prompt = actors::text_prompt{prompt};
  r.sampling.max_tokens = max_tokens;
  r.sampling.temperature = temperature;
  return r;
}

inline std::string prompt_of(int seed, int length) {
  std::string s;
  for (int i = 0; i < length; ++i)
    s += static_cast<char>('A' + (seed * 31 + i * 7 + i / 5) % 26);
  return s;
}

} // namespace scripted
