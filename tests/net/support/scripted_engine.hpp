// scripted_engine: an engine_port for tests, with scripted tokens, delays and failures.
//
// One thread serves all requests: each step gives every request that is not paused its next piece.
// A token of text is a byte, and its id is the value of the byte. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "actors/port/engine_port.hpp"

namespace twill::testing {

using namespace std::chrono_literals;

struct script {
  std::vector<std::string> pieces = {"Hello", ",", " world"};
  std::size_t repeat = 1;                   ///< the pieces this many times
  bool alternates = false;                  ///< every other step sends its choices in reverse order
  std::chrono::microseconds step{1000};     ///< time between pieces
  std::chrono::microseconds start_delay{0}; ///< time before `started`
  actors::finish_reason finish = actors::finish_reason::stop;
  std::string stop_string;
  std::int32_t stop_token = -1;
  std::vector<float> embedding{3, 4};           ///< of a request for hidden states, in one event
  std::optional<actors::request_error> refusal; ///< instead of `started`
  std::optional<actors::request_error> failure; ///< instead of finishing
};

class scripted_engine final : public actors::engine_port {
public:
  using writer = std::function<script(const actors::request&)>;

  explicit scripted_engine(writer write = [](const actors::request&) { return script{}; });
  ~scripted_engine() override;

  actors::request_id submit(actors::request what, actors::event_callback on_event) override;
  void cancel(actors::request_id id) override;
  void pause(actors::request_id id) override;
  void resume(actors::request_id id) override;
  actors::engine_state state() const override { return state_; }
  std::string state_detail() const override { return "as scripted"; }
  std::vector<actors::model_info> models() const override;
  actors::engine_stats stats() const override;
  std::vector<actors::tenant_stats> tenants() const override {
    const std::lock_guard lock(mutex_);
    return tenants_;
  }
  std::vector<actors::mailbox_depth> mailboxes() const override {
    return {{"test-model", "batcher", 3}};
  }
  void
  describe(std::function<void(std::vector<actors::scheduler_snapshot>)> callback) const override {
    callback(snapshots);
  }
  actors::result<std::vector<std::int32_t>> tokenize(const std::string& model,
                                                     const actors::text_prompt& text,
                                                     bool parse_special) const override;
  actors::result<std::vector<std::int32_t>>
  tokenize_chat(const std::string& model, const actors::chat_prompt& chat) const override;
  actors::result<std::string> render_chat(const std::string& model,
                                          const actors::chat_prompt& chat) const override;
  actors::result<std::string> detokenize(const std::string& model,
                                         const std::vector<std::int32_t>& ids) const override;
  actors::result<std::vector<actors::token_piece>>
  pieces(const std::string& model, const std::vector<std::int32_t>& ids) const override;
  actors::result<actors::tokenizer_info>
  describe_tokenizer(const std::string& model) const override;
  void drain(std::function<void()> drained) override;
  void abort_all() override;

  void set_state(actors::engine_state s) { state_ = s; }
  void set_script(writer write);
  void set_tenants(std::vector<actors::tenant_stats> all) {
    const std::lock_guard lock(mutex_);
    tenants_ = std::move(all);
  }

  // `count` and `snapshots` must be set before a client requests what they give.
  std::function<void(actors::engine_stats&)> count = [](actors::engine_stats&) {};
  std::vector<actors::scheduler_snapshot> snapshots;

  std::size_t running() const;
  std::vector<actors::request> submitted() const;
  /// True once `n` requests were cancelled, within the time-out.
  bool wait_cancelled(int n, std::chrono::milliseconds within = 5s) const;
  bool wait_running(std::size_t n, std::chrono::milliseconds within = 5s) const;
  bool wait_paused(int n, std::chrono::milliseconds within = 5s) const;
  bool wait_submitted(std::size_t n, std::chrono::milliseconds within = 5s) const;
  /// True once no token was made for a while, within ten seconds.
  bool wait_stalled() const;
  std::uint64_t tokens_made() const { return tokens_made_; }
  int paused_count() const { return pauses_; }
  int resumed_count() const { return resumes_; }

private:
  using clock = std::chrono::steady_clock;
  struct playing {
    script plan;
    actors::event_callback on_event;
    std::int32_t n = 1;
    bool logprobs = false;
    std::int32_t top = 0;
    bool echo_ids = false;
    bool pooled = false;
    bool started = false;
    bool paused = false;
    std::size_t next = 0;
    std::int32_t made = 0;
    std::int32_t prompt_tokens = 0;
    std::int32_t max_tokens = -1;
    clock::time_point due;
  };

  void play();
  bool step(playing& p, std::vector<actors::event>& out);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  writer write_;
  std::vector<actors::tenant_stats> tenants_;
  std::map<actors::request_id, std::shared_ptr<playing>> playing_;
  std::vector<actors::request> submitted_;
  std::vector<std::function<void()>> drained_;
  std::atomic<actors::engine_state> state_{actors::engine_state::ready};
  std::atomic<std::uint64_t> tokens_made_{0};
  std::atomic<int> cancels_{0};
  std::atomic<int> pauses_{0};
  std::atomic<int> resumes_{0};
  actors::request_id last_id_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace twill::testing
