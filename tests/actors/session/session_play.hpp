// session_play: drives a session_core (the logic of one request) by random operations, and
// maintains a plain reference of what the client, the batcher and the tenant of this request must
// see.
//
// session_play acts as the core's session_host, and as the batcher, the grammar compiler and the
// client. It applies each operation to the core and to the reference, and then compares the two.
// One kind of operation destroys the core, as killing the daemon does; the request then continues
// in another core from the events that its client has received.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/port/request_summary.hpp"
#include "actors/session/session_core.hpp"
#include "tests/actors/session/made_up_request.hpp"
#include "tests/actors/session/plain_output.hpp"

namespace session_tests {

/// When the request came, when its first step began, and a time after which tokens come.
inline const auto submitted_at = twill::actors::steady_clock::time_point{} + std::chrono::hours(1);
inline const auto scheduled_at = submitted_at + std::chrono::seconds(2);
inline const auto drawn_after = submitted_at + std::chrono::seconds(3);

class session_play : public twill::actors::session_core::session_host {
public:
  explicit session_play(made_up_request from);
  ~session_play() override;
  session_play(const session_play&) = delete;
  session_play& operator=(const session_play&) = delete;

  void perform(const twill::test::operation& op);

private:
  enum class stage { fresh, encoding, compiling, submitted, scoring, drawing };

  /// The inputs of one core, and the outputs that it must have had.
  struct account {
    stage at = stage::fresh;
    bool goes_on = false; ///< begins with tokens that an earlier core has drawn
    bool paid = false, scored_memory = false;
    bool in_batcher = false, announced = false, moved = false, drew = false;
    bool silenced = false, ended = false, over = false, failed = false;
    std::string status;
    std::int32_t max_new = 0, n_made = 0, n_drawn = 0, n_submitted = 0, n_released = 0,
                 n_waited = 0;
    std::vector<std::int32_t> prompt;
    std::vector<std::vector<std::int32_t>> ids; ///< the tokens of each choice
    std::vector<bool> finished, called, by_length;
    std::vector<std::int32_t> finish_received; ///< choices that the core asked the batcher to
                                               ///< finish
    twill::actors::usage use;
    twill::actors::output_plan plan;
    std::vector<std::string> events;
    bool any_use = false; ///< the usage of the last event is not compared
    twill::actors::steady_clock::time_point first, last;
  };

  void begin(const twill::test::operation& op);
  void go_on(const twill::test::operation& op);
  void disturb(const twill::test::operation& op);
  void stray(const twill::test::operation& op);
  void start(const twill::test::operation& op);
  void encoded(const twill::test::operation& op);
  void compiled(const twill::test::operation& op);
  void scored(const twill::test::operation& op);
  void draw(const twill::test::operation& op);

  // The account of the core.
  void expect_prepared();
  std::optional<twill::actors::errc> expect_room(std::string& param);
  void expect_submit();
  bool expect_replay();
  void expect_answer_to_prompt(twill::actors::event first);
  void expect_event(twill::actors::event e);
  void expect_error(twill::actors::errc code, const std::string& param = "");
  void expect_end(const std::string& status, bool releases);
  void expect_token(const twill::actors::token_ready& drawn);
  twill::actors::event first_event() const;
  plain_rules rules() const;
  std::int64_t cost_ahead() const;
  bool prompt_only() const { return request_.asked.sampling.max_tokens == 0; }
  bool scores() const { return request_.asked.prompt_logprobs >= 0 && !now_.goes_on; }
  std::size_t n_choices() const;
  twill::actors::steady_clock::time_point now() const override {
    return drawn_after + std::chrono::milliseconds(tick_);
  }

  void compare();
  void compare_submitted() const;
  void compare_counts() const;
  void compare_end() const;

  // The calls of the core's host.
  void encode(twill::actors::served_model_ptr, twill::actors::prompt_variant prompt,
              bool to_context) override;
  void submit(const twill::actors::submit_prompt& prompt) override { submitted_.push_back(prompt); }
  void compile(const twill::actors::compile_grammar& order) override { orders_.push_back(order); }
  void finish_choice(std::int32_t choice) override { finished_.push_back(choice); }
  void release() override { ++n_released_; }
  void waited_too_long() override { ++n_waited_; }
  std::int32_t retry_after_s() override { return 7; }
  void on_over() override {
    ++n_over_;
    was_queued_ = core_->was_queued();
  }
  void hear(const twill::actors::event& e);

  const made_up_request request_;
  account now_;

  // The calls that the core made.
  std::optional<twill::actors::prompt_variant> to_encode_;
  bool to_context_ = false;
  bool was_queued_ = false; ///< when the request was over
  std::vector<twill::actors::submit_prompt> submitted_;
  std::vector<twill::actors::compile_grammar> orders_;
  std::vector<std::int32_t> finished_;
  int n_released_ = 0, n_waited_ = 0, n_over_ = 0;
  std::vector<std::string> heard_;
  std::vector<twill::actors::request_summary> received_;
  std::string last_without_use_;
  std::size_t left_at_ = 0; ///< events that the client had received when it left; 0: it did not
                            ///< leave

  // Output that the client has received, from all cores.
  std::vector<twill::actors::made_choice> delivered_;
  std::string continuity_;
  enum class listening { as_usual, leaves, throws } next_event_ = listening::as_usual;

  std::vector<std::uint32_t> call_at_; ///< the position of each choice within a call's pieces
  std::int64_t tick_ = 0;
  std::vector<twill::actors::made_choice> made_; ///< given to the present core at its start
  bool other_model_ = false;                     ///< the present core should have continued with
                                                 ///< another model
  std::shared_ptr<int> held_by_callback_;
  std::unique_ptr<twill::actors::stats_board> board_;
  std::unique_ptr<twill::actors::token_budget> budget_;
  std::shared_ptr<twill::actors::request_control> control_;
  std::unique_ptr<twill::actors::session_core> core_;
};

} // namespace session_tests
