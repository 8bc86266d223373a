// session_core: the logic of one request without actors: validation, tokenizing, grammar, text,
// stop strings, tool calls and usage. It emits events in the order that actors/port/engine_port.hpp
// promises.
//
// One thread at a time. Each public member function reports one thing that happened to the request.
// Requests to the batcher and to the session's actor go through `session_host`. Once is_over() is
// true, no event is emitted any more, whatever is reported.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/detail/stats_board.hpp"
#include "actors/detail/token_budget.hpp"
#include "actors/messages.hpp"
#include "actors/session/choice_output.hpp"
#include "actors/session/output_plan.hpp"
#include "actors/session/prompt.hpp"
#include "actors/session/request_stats.hpp"
#include "actors/session/score_memory.hpp"
#include "actors/session/session_args.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// The error for a client whose tenant must wait `wait_s` seconds.
request_error rate_limited(const token_budget& budget, std::int32_t wait_s);

class session_core {
public:
  /// The surroundings of the session: its connection to the batcher, and its end.
  class session_host {
  public:
    virtual ~session_host() = default;
    /// Converts the prompt into ids, on another thread if that takes long, and then calls
    /// encoded(). If `to_context` is set, a prompt that exceeds the context is refused early.
    virtual void encode(served_model_ptr model, prompt_variant prompt, bool to_context) = 0;
    virtual void submit(const submit_prompt& prompt) = 0;
    /// Orders a grammar, which is delivered to session_core::grammar().
    virtual void compile(const compile_grammar& order) = 0;
    virtual void finish_choice(std::int32_t choice) = 0;
    virtual void release() = 0;
    /// Asks the batcher to end the request, unless it was scheduled.
    virtual void waited_too_long() = 0;
    /// The seconds after which a client that is refused now should retry; at least 1.
    virtual std::int32_t retry_after_s() = 0;
    virtual steady_clock::time_point now() const = 0;
    /// The request is over; the session may end.
    virtual void on_over() = 0;
  };

  session_core(session_args args, stats_board& stats, session_host& host);

  /// Starts the request. With a refusal the request ends at once, and `model` may be null.
  void start(served_model_ptr model, const std::optional<request_error>& refusal);
  /// The answer to encode(): the prompt with its ids, or with the reason why it has none.
  void encoded(encoded_prompt answer);
  void grammar(const grammar_answer& answer);
  /// `structured.wait_timeout` has passed since the grammar was ordered.
  void grammar_overdue();
  void queued();
  void scored(const prompt_scored& scores);
  void pooled(const prompt_pooled& result, steady_clock::time_point now);
  void token(const token_ready& drawn, steady_clock::time_point now);
  void failed(const request_error& why);
  /// The batcher has failed with all its state, and a new batcher has replaced it. If nothing of
  /// the request was streamed and it was not queued anew before, it is queued at the new batcher;
  /// otherwise it ends with `why`.
  void batcher_lost(const request_error& why);
  /// The grammar compiler has failed: a request that waits for its grammar ends with `why`.
  void compiler_lost(const request_error& why);
  void cancel();
  void expire();
  /// `scheduler.queue_timeout` has passed.
  void waited_too_long();
  /// Ends the request with an error and releases all that it holds.
  void end_with(const request_error& why);
  bool is_over() const { return is_over_; }
  /// Whether the batcher has or had the request, and did not refuse or lose it.
  bool was_queued() const { return in_batcher_; }

private:
  std::optional<request_error> prepare(result<std::vector<std::int32_t>> ids,
                                       const std::string& written, submit_prompt& out);
  std::optional<request_error> take_score_memory(const sequence_spec& spec);
  std::optional<request_error> pay(const submit_prompt& out);
  void note_paid(std::int64_t tokens);
  void submit();
  std::string name_continuity() const;
  std::optional<request_error> replay_made();
  void answer_prompt(event e);
  void emit(event e);
  void close(bool aborted, const request_error* error);
  void report_end(const request_end& end) const;

  session_args args_;
  score_memory score_memory_;
  served_model_ptr model_;
  request_stats stats_;
  session_host& host_;
  token_ids prompt_;
  std::string continuity_; ///< see event::continuity
  submit_prompt pending_;  ///< the message that is sent once the grammar is compiled
  output_plan plan_;
  std::shared_ptr<std::atomic<bool>> compile_abandoned_; ///< null unless a grammar was ordered
  bool waits_for_grammar_ = false;
  std::shared_ptr<const config::sampling_params> sampling_;
  std::vector<choice_output> choices_;
  std::int32_t finished_choices_ = 0;
  std::int32_t n_made_ = 0; ///< output tokens of an earlier run, over all choices
  usage use_;
  std::int64_t paid_ = 0; ///< tokens that the tenant's budget was charged
  bool in_batcher_ = false;
  bool started_ = false; ///< the client knows that the request is queued
  bool moved_ = false;   ///< the request was queued again after the batcher was lost
  bool is_over_ = false;
  bool prompt_only_ = false; ///< nothing is generated
  bool any_length_ = false;
};

} // namespace twill::actors
