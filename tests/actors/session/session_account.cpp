// What a session core must have done: the account of a session_play.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "actors/port/error_words.hpp"
#include "tests/actors/session/piece_vocabulary.hpp"
#include "tests/actors/session/session_play.hpp"
#include "tests/actors/session/written_event.hpp"

namespace session_tests {

using namespace twill;
using namespace twill::actors;
using test::demand;
using test::demand_equal;

namespace {

std::uint64_t count_of(const histogram& h) {
  std::uint64_t n = 0;
  for (const auto one : h.counts)
    n += one;
  return n;
}

/// Demands one observation of `value`, or none.
void demand_observed(const histogram& h, bool is_one, double value, const std::string& what) {
  demand_equal(count_of(h), is_one ? 1U : 0U, "how often was observed: " + what);
  const double expected = is_one ? value : 0;
  demand(std::abs(h.sum - expected) < 1e-9 * (1 + std::abs(expected)),
         what + " is " + std::to_string(h.sum) + ", expected " + std::to_string(expected));
}

double seconds(steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

std::int64_t used_of(token_budget& budget) {
  const auto always = steady_clock::time_point{};
  // A bucket of 60 tokens that refills by one a second is full again after as many seconds.
  return budget.check(budget.per_minute(), always).value_or(0);
}

} // namespace

plain_rules session_play::rules() const {
  plain_rules out;
  out.tokens = request_.model->files->text.get();
  out.params = &request_.asked.sampling;
  for (std::int32_t id = 0; id < piece_vocabulary::n_pieces; ++id) {
    const auto& more = request_.asked.sampling.stop_token_ids;
    if (std::find(more.begin(), more.end(), id) != more.end() ||
        (id == piece_vocabulary::end && !request_.asked.sampling.ignore_eos))
      out.stop_ids.push_back(id);
  }
  out.shown = now_.plan.shown;
  out.begins = std::holds_alternative<chat_prompt>(request_.asked.prompt);
  out.parses = request_.asked.parse_output;
  out.reading = now_.plan.reading;
  out.max_new = static_cast<std::size_t>(now_.max_new);
  return out;
}

event session_play::first_event() const {
  event e;
  e.started = true;
  e.continuity = "there";
  if (request_.asked.echo_prompt_ids) e.prompt_ids = now_.prompt;
  return e;
}

void session_play::expect_event(event e) {
  if (e.last) now_.ended = true;
  if (now_.silenced) return;
  e.use = now_.use;
  now_.events.push_back(written(e, !now_.any_use));
  now_.silenced = left_at_ > 0 && now_.events.size() == left_at_;
}

void session_play::expect_error(errc code, const std::string& param) {
  event e;
  e.error = request_error{code, "", param};
  if (code == errc::queue_full || code == errc::queue_timed_out || code == errc::rate_limited)
    e.error->retry_after_s = 1;
  e.last = true;
  expect_event(std::move(e));
  now_.failed = true;
  expect_end(std::string(word_of(code)), now_.in_batcher);
}

void session_play::expect_end(const std::string& status, bool releases) {
  now_.over = true;
  now_.status = status;
  if (releases) now_.n_released += 1;
}

/// Computes the room for output in the context and the KV cache. Returns an error if there is none.
std::optional<errc> session_play::expect_room(std::string& param) {
  const auto& params = request_.asked.sampling;
  const bool chat = std::holds_alternative<chat_prompt>(request_.asked.prompt);
  const auto prompt = static_cast<std::int64_t>(now_.prompt.size());
  const std::int64_t context = request_.model->max_context_tokens;
  const std::int64_t kv = request_.model->kv_tokens;
  const std::int64_t asked = std::max(params.max_tokens, 0);
  // At least one token follows unless none is requested. The last token drawn is never computed.
  if (prompt + (prompt_only() ? 0 : 1) > context) {
    param = chat ? "messages" : "prompt";
    return errc::context_too_long;
  }
  param = "max_tokens";
  if (prompt + asked > context) return errc::context_too_long;
  if (prompt > kv || prompt + asked - 1 > kv) return errc::too_large;
  std::int64_t most = std::min(context - prompt, kv - (prompt - 1));
  if (params.max_tokens > 0) most = std::min<std::int64_t>(most, params.max_tokens);
  if (params.max_tokens < 0 && chat && request_.options.default_max_tokens > 0)
    most = std::min<std::int64_t>(most, request_.options.default_max_tokens);
  now_.max_new = static_cast<std::int32_t>(prompt_only() ? 1 : most);
  return std::nullopt;
}

std::int64_t session_play::cost_ahead() const {
  const auto prompt = static_cast<std::int64_t>(now_.prompt.size());
  if (prompt_only()) return prompt;
  // At most 256 tokens a choice without max_tokens, but at least those of the earlier run.
  const std::int32_t each =
      request_.asked.sampling.max_tokens < 0 ? std::min(now_.max_new, 256) : now_.max_new;
  std::int64_t n_made = 0;
  for (const auto& one : made_)
    n_made += std::ssize(one.tokens);
  return prompt + std::max<std::int64_t>(std::int64_t{each} * request_.asked.sampling.n, n_made);
}

void session_play::expect_prepared() {
  const request& asked = request_.asked;
  now_.prompt = request_.prompt;
  if (now_.prompt.empty()) return expect_error(errc::empty_prompt, "prompt");
  if (asked.truncate_prompt_tokens > 0)
    while (static_cast<std::int32_t>(now_.prompt.size()) > asked.truncate_prompt_tokens)
      now_.prompt.erase(now_.prompt.begin());
  request planned = asked;
  if (auto* chat = std::get_if<chat_prompt>(&planned.prompt);
      chat != nullptr && asked.tools.kind == tool_choice_kind::none)
    chat->tools = value();
  auto plan =
      plan_output(*request_.model, planned, request_.begun_reasoning ? "hi <think>\n" : "hi");
  if (!plan.ok()) return expect_error(plan.code(), "tool_choice");
  now_.plan = std::move(plan).value();
  const bool alien = std::any_of(made_.begin(), made_.end(), [](const made_choice& one) {
    return std::any_of(one.tokens.begin(), one.tokens.end(),
                       [](auto id) { return id >= piece_vocabulary::n_pieces + 2; });
  });
  if (now_.goes_on && (made_.size() != n_choices() || prompt_only() || alien))
    return expect_error(errc::executor_failed);
  std::string param;
  if (const auto why = expect_room(param)) return expect_error(*why, param);
  now_.scored_memory = scores();
  if (request_.has_budget) {
    if (request_.used_before + std::min<std::int64_t>(cost_ahead(), 60) > 60)
      return expect_error(errc::rate_limited);
    now_.paid = true;
  }
  if (now_.silenced) return expect_end("cancelled", false);
  now_.use.prompt_tokens = static_cast<std::int32_t>(now_.prompt.size());
  if (!now_.plan.grammar || prompt_only()) return expect_submit();
  now_.at = stage::compiling;
  demand_equal(orders_.size(), std::size_t{1}, "orders of grammars");
  demand(orders_[0].spec == *now_.plan.grammar, "the grammar that is ordered");
  demand(orders_[0].markers ==
             (now_.plan.with_markers ? now_.plan.shown : std::vector<std::int32_t>()),
         "the markers that it holds");
  demand(orders_[0].client == "c" && orders_[0].abandoned && !*orders_[0].abandoned,
         "whose grammar is ordered");
}

/// Returns false if no token can follow the earlier run's output.
bool session_play::expect_replay() {
  now_.ids.assign(n_choices(), {});
  now_.finished.assign(n_choices(), false);
  now_.called = now_.by_length = now_.finished;
  const plain_rules plain = rules();
  std::size_t n_finished = 0;
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const auto& ids = now_.ids[i] = made_[i].tokens;
    now_.finished[i] = made_[i].finished;
    n_finished += made_[i].finished ? 1 : 0;
    const auto step = last_step(plain, ids);
    now_.called[i] = step.called;
    now_.by_length[i] = step.reading.finish == finish_reason::length;
    now_.n_made += static_cast<std::int32_t>(ids.size());
    if (!step.reading.finish || made_[i].finished) continue;
    const bool no_room = now_.by_length[i] && request_.asked.sampling.max_tokens < 0;
    now_.any_use = true;
    expect_error(no_room ? errc::too_large : errc::executor_failed);
    return false;
  }
  now_.use.completion_tokens = now_.n_made;
  if (n_finished < n_choices()) return true;
  now_.any_use = true;
  expect_error(errc::executor_failed);
  return false;
}

void session_play::expect_submit() {
  if (other_model_) return expect_error(errc::model_changed);
  if (!expect_replay()) return;
  if (prompt_only() && !scores()) return expect_answer_to_prompt(first_event());
  now_.in_batcher = true;
  now_.n_submitted += 1;
  now_.at = stage::submitted;
}

void session_play::expect_answer_to_prompt(event first) {
  expect_event(std::move(first));
  for (std::size_t i = 0; i < n_choices(); ++i) {
    event done;
    done.choice = static_cast<std::int32_t>(i);
    done.finish = finish_reason::length;
    done.last = i + 1 == n_choices();
    expect_event(std::move(done));
  }
  expect_end("length", now_.in_batcher);
}

void session_play::expect_token(const token_ready& drawn) {
  const auto choice = static_cast<std::size_t>(drawn.choice);
  const auto when = now();
  if (!std::exchange(now_.drew, true)) now_.first = when;
  now_.last = when;
  now_.ids[choice].push_back(drawn.token);
  auto step = last_step(rules(), now_.ids[choice]);
  now_.n_drawn += 1;
  now_.use.completion_tokens += 1;
  now_.use.cached_tokens = drawn.cached_tokens;
  now_.called[choice] = step.called;
  event e;
  e.choice = drawn.choice;
  e.tokens = {named_piece(drawn.token, drawn.logprob, drawn.top)};
  e.text = std::move(step.text);
  e.parts = std::move(step.parts);
  e.finish = step.reading.finish;
  e.stop_string = step.reading.stop_string;
  e.stop_token = step.reading.stop_token;
  if (e.finish) {
    now_.finished[choice] = true;
    now_.by_length[choice] = e.finish == finish_reason::length;
    e.last = std::find(now_.finished.begin(), now_.finished.end(), false) == now_.finished.end();
    if (!drawn.stopped && !drawn.length) now_.finish_received.push_back(drawn.choice);
  }
  const bool last = e.last;
  expect_event(std::move(e));
  const bool any_length =
      std::find(now_.by_length.begin(), now_.by_length.end(), true) != now_.by_length.end();
  if (last)
    expect_end(any_length ? "length" : "stop", false);
  else if (now_.silenced)
    expect_end("cancelled", now_.in_batcher);
}

void session_play::compare() {
  for (std::size_t i = 0; i < std::max(heard_.size(), now_.events.size()); ++i) {
    const bool loose = now_.any_use && i + 1 == now_.events.size();
    const std::string is = i >= heard_.size() ? "nothing" : loose ? last_without_use_ : heard_[i];
    const std::string expected = i < now_.events.size() ? now_.events[i] : "nothing";
    demand(is == expected,
           "event " + std::to_string(i) + " is\n  " + is + "\nexpected\n  " + expected);
  }
  demand_equal(n_over_, now_.over ? 1 : 0, "how often the session was over");
  demand_equal(core_->is_over(), now_.over, "whether it is over");
  demand_equal(now_.over ? was_queued_ : core_->was_queued(), now_.in_batcher,
               "whether the batcher has it");
  demand_equal(n_released_, now_.n_released, "releases");
  demand_equal(n_waited_, now_.n_waited, "orders to end what waits");
  demand(finished_ == now_.finish_received, "the choices that the batcher was told to finish");
  demand_equal(control_->ended.load(), now_.ended, "whether the last event was delivered");
  demand_equal(static_cast<std::int32_t>(submitted_.size()), now_.n_submitted, "submitted prompts");
  if (!submitted_.empty()) compare_submitted();
  demand_equal(score_memory::taken_by_all(),
               now_.scored_memory
                   ? score_memory::bytes_of(std::ssize(now_.prompt), request_.asked.prompt_logprobs)
                   : 0,
               "the memory of scores");
  if (!orders_.empty() && (now_.over || now_.at == stage::compiling))
    demand_equal(orders_[0].abandoned->load(), now_.over, "whether the grammar is abandoned");
  compare_counts();
  if (now_.over) compare_end();
}

void session_play::compare_submitted() const {
  const submit_prompt& sent = submitted_.back();
  const auto& params = request_.asked.sampling;
  demand(sent.request == 3 && sent.client == "c" && sent.tenant == "t" && sent.priority == 4 &&
             sent.client_id == "its id" && sent.spec.cache_scope == 5 && sent.spec.seed == 5,
         "whose prompt is submitted");
  demand(*sent.spec.prompt == now_.prompt, "the prompt that is submitted");
  demand(*sent.spec.stop_ids == rules().stop_ids, "the stop ids that are submitted");
  demand_equal(sent.spec.max_new, now_.max_new, "tokens that may be drawn");
  demand_equal(sent.n_choices, prompt_only() ? 1 : params.n, "choices that are submitted");
  demand_equal(sent.spec.prompt_logprobs, scores() ? request_.asked.prompt_logprobs : -1,
               "scores that are asked for");
  demand_equal(sent.spec.rules != nullptr, now_.plan.grammar && !prompt_only(),
               "whether the output keeps to a form");
  demand_equal(sent.made != nullptr, now_.goes_on, "whether something was made");
  for (std::size_t i = 0; i < made_.size(); ++i) {
    const auto made = sent.made_of(static_cast<std::int32_t>(i));
    demand(std::equal(made.begin(), made.end(), made_[i].tokens.begin(), made_[i].tokens.end()),
           "what was made of a choice");
    demand_equal(sent.is_over(static_cast<std::int32_t>(i)), made_[i].finished,
                 "whether a choice is over");
  }
}

void session_play::compare_counts() const {
  std::int64_t waiting = 0, running = 0;
  for (const auto& tenant : board_->read_tenants()) {
    waiting += tenant.requests_waiting;
    running += tenant.requests_running;
  }
  const bool queued = now_.n_submitted > 0 && !now_.over;
  demand_equal(waiting, queued && !now_.drew ? 1 : 0, "requests that wait");
  demand_equal(running, queued && now_.drew ? 1 : 0, "requests that run");
  if (!budget_) return;
  const std::int64_t used = std::int64_t{now_.use.prompt_tokens} + now_.use.completion_tokens;
  std::int64_t expected = request_.used_before;
  if (now_.paid && !now_.over) expected += std::max(cost_ahead(), used);
  if (now_.paid && now_.over && (!now_.failed || now_.drew)) expected += used;
  demand_equal(used_of(*budget_), expected, "tokens of the tenant's budget");
}

void session_play::compare_end() const {
  demand_equal(held_by_callback_.use_count(), 1L, "holders of the client's callback");
  demand_equal(received_.size(), std::size_t{1}, "summaries");
  const request_summary& about = received_[0];
  const auto drawn = now_.n_drawn;
  demand(about.status == now_.status,
         "the status is " + std::string(about.status) + ", expected " + now_.status);
  demand_equal(about.failed, now_.failed, "whether it failed");
  demand_equal(about.called_tools,
               std::find(now_.called.begin(), now_.called.end(), true) != now_.called.end(),
               "whether tools were called");
  demand_equal(about.first_token.has_value(), now_.drew, "whether there was a token");
  demand_equal(about.queued.has_value(), now_.drew, "whether there was a step");
  if (now_.drew) {
    demand(*about.first_token == now_.first - submitted_at, "when the first token came");
    demand(*about.last_token == now_.last - submitted_at, "when the last token came");
  }
  if (!now_.any_use) {
    demand_equal(about.use.completion_tokens, now_.use.completion_tokens, "tokens of the output");
    demand_equal(about.use.prompt_tokens, now_.use.prompt_tokens, "tokens of the prompt");
  }
  const bool whole = now_.status == "stop" || now_.status == "length";
  const bool cancelled = now_.status == "cancelled";
  const double total = seconds(now_.last - submitted_at);
  const double each = drawn > 1 ? seconds(now_.last - now_.first) / (drawn - 1) : 0;
  const bool spaced = whole && n_choices() == 1 && drawn > 1;
  const bool ran = whole && now_.drew;

  const auto tenants = board_->read_tenants();
  demand_equal(tenants.size(), std::size_t{1}, "tenants");
  const tenant_stats& t = tenants[0];
  demand(t.tenant == "t", "the tenant");
  demand(t.finished.size() == 1 && t.finished.begin()->first == now_.status &&
             t.finished.begin()->second == 1,
         "the tenant's ends");
  demand_equal(t.generation_tokens, static_cast<std::uint64_t>(drawn), "the tenant's tokens");
  demand_equal(
      t.prompt_tokens,
      static_cast<std::uint64_t>(now_.drew || whole || cancelled ? now_.use.prompt_tokens : 0),
      "the tenant's prompt tokens");
  demand_equal(t.cached_prompt_tokens,
               static_cast<std::uint64_t>(now_.drew ? request_.cached_tokens : 0),
               "the tenant's cached tokens");
  const double first = seconds(now_.first - submitted_at);
  const double queue = seconds(scheduled_at - submitted_at);
  demand_observed(t.time_to_first_token_seconds, now_.drew, first, "a tenant's first token");
  demand_observed(t.request_queue_time_seconds, now_.drew, queue, "a tenant's queue");
  demand_observed(t.e2e_request_latency_seconds, ran, total, "a tenant's latency");
  demand_observed(t.time_per_output_token_seconds, spaced, each, "a tenant's time per token");

  const engine_stats s = board_->read();
  demand_equal(s.finished_abort, cancelled ? 1U : 0U, "cancelled requests");
  demand_equal(s.finished_error, now_.failed ? 1U : 0U, "failed requests");
  demand_equal(s.finished_length, now_.status == "length" ? 1U : 0U, "requests ended by length");
  demand_equal(s.finished_stop, now_.status == "stop" ? 1U : 0U, "requests that stopped");
  std::size_t most = 0;
  for (const auto& ids : now_.ids)
    most = std::max(most, ids.size());
  const auto& params = request_.asked.sampling;
  demand_observed(s.time_to_first_token_seconds, now_.drew, first, "a first token");
  demand_observed(s.e2e_request_latency_seconds, ran, total, "a latency");
  demand_observed(s.request_queue_time_seconds, ran, queue, "a queue");
  demand_observed(s.request_prefill_time_seconds, ran, seconds(now_.first - scheduled_at),
                  "a prefill");
  demand_observed(s.request_decode_time_seconds, ran, seconds(now_.last - now_.first), "a decode");
  demand_observed(s.request_inference_time_seconds, ran, seconds(now_.last - scheduled_at),
                  "an inference");
  demand_observed(s.request_prompt_tokens, ran, now_.use.prompt_tokens, "a prompt");
  demand_observed(s.request_generation_tokens, ran, now_.use.completion_tokens, "an output");
  demand_observed(s.request_max_num_generation_tokens, ran, static_cast<double>(most),
                  "the longest choice");
  demand_observed(s.request_params_n, ran, params.n, "choices");
  demand_observed(s.request_params_max_tokens, ran && params.max_tokens >= 0, params.max_tokens,
                  "max_tokens");
  demand_observed(s.request_time_per_output_token_seconds, spaced, each, "a time per token");
}

} // namespace session_tests
