// session_core: the logic of one request without actors: validation, tokenizing, grammar, text,
// stop strings, tool calls, usage, events in the order that actors/port/engine_port.hpp promises.
//
// One thread at a time. Its member functions are what happens to the request; what it wants of the
// batcher and of its actor goes through `session_host`. Once over() is true it emits nothing more,
// whatever still arrives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/detail/stats_board.hpp"
#include "actors/detail/token_budget.hpp"
#include "actors/messages.hpp"
#include "actors/session/output_plan.hpp"
#include "actors/session/prompt.hpp"
#include "actors/session/score_memory.hpp"
#include "actors/session/stop_matcher.hpp"
#include "config/options.hpp"
#include "models/text/detokenizer.hpp"
#include "models/text/tool_calls/parser.hpp"

namespace twill::actors {

/// What port and session share of a request.
struct request_control {
  /// Once this is set, no further event is delivered.
  std::atomic<bool> silenced{false};
  /// The last event was delivered, or is being delivered.
  std::atomic<bool> ended{false};
  /// What the tenant's budget was charged and is still to be settled; for a ledger.
  std::atomic<std::int64_t> charged_tokens{0};
};

/// Everything that a session is made with.
struct session_args {
  request_id id = 0;
  actors::request request;
  event_callback on_event;
  std::shared_ptr<request_control> control;
  config::limit_options limits;
  std::int64_t prompt_bytes = 0;
  steady_clock::time_point submitted;
  std::shared_ptr<const config::tenant_options> tenant; ///< null where it has no limits
  std::shared_ptr<token_budget> budget;                 ///< the tenant's; null where it has none
  std::uint64_t cache_scope = 0;
};

/// What a client is told whose tenant must wait for so many seconds.
request_error rate_limited(const token_budget& budget, std::int32_t wait_s);

class session_core {
public:
  /// What carries the session: its way to the batcher, and its end.
  class session_host {
  public:
    virtual ~session_host() = default;
    /// Turns the prompt into ids, elsewhere where that takes long, and calls encoded().
    /// Where `to_context` is set, a prompt that exceeds the context is refused early.
    virtual void encode(served_model_ptr model, prompt_variant prompt, bool to_context) = 0;
    virtual void submit(const submit_prompt& prompt) = 0;
    /// Orders a grammar, which arrives by session_core::grammar().
    virtual void compile(const compile_grammar& order) = 0;
    virtual void finish_choice(std::int32_t choice) = 0;
    virtual void release() = 0;
    /// Has the batcher end the request, unless it was scheduled.
    virtual void waited_too_long() = 0;
    /// When a client that is refused now should come back; at least 1.
    virtual std::int32_t retry_after_s() = 0;
    /// The request is over; the session may end.
    virtual void on_over() = 0;
  };

  session_core(session_args args, stats_board& stats, session_host& host);

  /// With a refusal the request ends at once, and no model is needed.
  void start(served_model_ptr model, const std::optional<request_error>& refusal);
  /// The answer to encode(): the prompt comes back with its ids, or with why it has none.
  void encoded(encoded_prompt answer);
  void grammar(const grammar_answer& answer);
  /// `structured.wait_timeout` has passed since the grammar was ordered.
  void grammar_overdue();
  void queued();
  void scored(const prompt_scored& scores);
  void pooled(const prompt_pooled& result, steady_clock::time_point now);
  void token(const token_ready& drawn, steady_clock::time_point now);
  void failed(const request_error& why);
  /// The batcher was lost with all that it held, and another has taken its place: a request of
  /// which nothing was streamed is queued there, once; others end with `why`.
  void batcher_lost(const request_error& why);
  /// The compiler was lost: a request that waits for its grammar ends with `why`.
  void compiler_lost(const request_error& why);
  void cancel();
  void expire();
  /// `scheduler.queue_timeout` has passed.
  void waited_too_long();
  /// Ends the request with an error and releases what it holds.
  void end_with(const request_error& why);
  bool is_over() const { return is_over_; }
  /// The batcher has, or had, the request, and did not refuse or lose it.
  bool was_queued() const { return in_batcher_; }

private:
  struct choice_state {
    /// `begins`: the output is a text of its own, not the continuation of the prompt's text.
    choice_state(const models::tokenizer& text, const config::sampling_params& params, bool begins,
                 const output_plan& plan, bool parses)
        : detokenize(text, params.skip_special_tokens, begins, plan.shown),
          stops(params.stop, params.include_stop_str_in_output) {
      if (parses) parser.emplace(plan.reading);
    }
    models::detokenizer detokenize;
    stop_matcher stops;
    std::optional<models::tool_calls::parser> parser; ///< where the output comes in parts
    std::int32_t whole_calls = 0;
    std::int32_t n_tokens = 0;
    bool finished = false;
  };

  std::optional<request_error> prepare(result<std::vector<std::int32_t>> ids,
                                       const std::string& written, submit_prompt& out);
  std::optional<request_error> check_request() const;
  std::optional<request_error> check_made(const config::sampling_params& params) const;
  std::optional<request_error> set_token_rules(sequence_spec& spec) const;
  std::optional<request_error> set_max_new(sequence_spec& spec) const;
  std::optional<request_error> take_score_memory(const sequence_spec& spec);
  std::optional<request_error> pay(const submit_prompt& out);
  void note_paid(std::int64_t tokens);
  void submit();
  std::string name_continuity() const;
  std::optional<request_error> replay_made();
  std::optional<finish_reason> replay_choice(choice_state& c, std::span<const std::int32_t> made);
  void answer_prompt(event e);
  void append_text(choice_state& c, const token_ready& drawn, event& e);
  static void parse_text(choice_state& c, event& e);
  void fill_tokens(const token_ready& drawn, event& e) const;
  void note_times(steady_clock::time_point scheduled, std::int32_t cached_tokens,
                  steady_clock::time_point now);
  void emit(event e);
  void close(bool aborted, const request_error* error);
  void report_end(std::string_view status, bool failed) const;
  template <class F>
  void count_for_tenant(F&& change);
  void count_prompt(tenant_stats& s);
  void count_end(std::string_view status);

  session_args args_;
  score_memory score_memory_;
  served_model_ptr model_;
  stats_board& stats_;
  session_host& host_;
  token_ids prompt_;
  std::string continuity_; ///< see event::continuity
  submit_prompt pending_;  ///< what is submitted, once its grammar is there
  output_plan plan_;
  std::shared_ptr<std::atomic<bool>> compile_abandoned_; ///< null unless a grammar was ordered
  bool waits_for_grammar_ = false;
  std::shared_ptr<const config::sampling_params> sampling_;
  std::vector<choice_state> choices_;
  std::int32_t finished_choices_ = 0;
  std::int32_t n_made_ = 0; ///< output tokens of an earlier run, over all choices
  usage use_;
  std::int64_t paid_ = 0; ///< tokens that the tenant's budget was charged
  bool in_batcher_ = false;
  bool started_ = false; ///< the client knows that the request is queued
  bool moved_ = false;   ///< it was queued again after the batcher was lost
  bool is_over_ = false;
  bool prompt_only_ = false; ///< nothing is generated
  bool any_length_ = false;
  bool counted_waiting_ = false; ///< for its tenant
  bool counted_prompt_ = false;  ///< for its tenant
  steady_clock::time_point scheduled_, first_token_, last_token_;
};

} // namespace twill::actors
