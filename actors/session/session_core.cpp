#include "actors/session/session_core.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <exception>
#include <iterator>
#include <utility>

#include "actors/executor/output_guard.hpp"
#include "actors/port/error_words.hpp"
#include "actors/session/request_checks.hpp"
#include "actors/session/request_log.hpp"
#include "actors/session/submission.hpp"
#include "actors/session/token_outputs.hpp"
#include "actors/structured/grammar_answer.hpp"
#include "actors/structured/grammar_service.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/offload/streams/checksum.hpp"

namespace twill::actors {

namespace {

/// The error of a request whose grammar was not compiled. The cause may be the request, this
/// server, or other requests that hold the needed resources.
errc error_of(models::grammar::errc code) {
  using why = models::grammar::errc;
  switch (code) {
  case why::no_resources:
    return errc::not_ready;
  case why::overdue:
    return errc::queue_timed_out;
  case why::helper_failed:
    return errc::executor_failed;
  default:
    return errc::grammar_refused;
  }
}

/// Clears all options about the output, for a request that generates none.
void drop_output(request& asked) {
  asked.sampling = {};
  asked.sampling.max_tokens = 0;
  asked.grammar.reset();
  asked.tools = {};
  asked.parse_output = false;
  asked.prompt_logprobs = -1;
}

/// Replaces `prompt` in an error by the name of the client's field.
void rename_prompt(request_error& error, const std::string& field) {
  constexpr std::string_view own = "`prompt`";
  if (field.empty() || error.param != "prompt") return;
  error.param = field;
  if (error.message.starts_with(own)) error.message.replace(0, own.size(), '`' + field + '`');
}

/// Output tokens that a request without `max_tokens` is charged.
constexpr std::int64_t expected_output_tokens = 256;

} // namespace

request_error rate_limited(const token_budget& budget, std::int32_t wait_s) {
  request_error error{
      errc::rate_limited,
      "the tokens of this tenant are used up for now (`tenants.tokens_per_minute` is " +
          std::to_string(budget.per_minute()) + "); retry in " + std::to_string(wait_s) + " s",
      ""};
  error.retry_after_s = wait_s;
  return error;
}

session_core::session_core(session_args args, stats_board& stats, session_host& host)
    : args_(std::move(args)), stats_(stats, args_.request.tenant, args_.submitted), host_(host) {}

void session_core::start(served_model_ptr model, const std::optional<request_error>& refusal) {
  if (is_over_) return;
  if (refusal) return end_with(*refusal);
  model_ = std::move(model);
  stats_.set_model(model_->id);
  request& asked = args_.request;
  if (asked.pooling != pooling::none) drop_output(asked);
  if (const auto error = check_request(asked, *model_, args_.limits)) return end_with(*error);
  // If the model must not call tools, they are left out of its prompt.
  if (auto* chat = std::get_if<chat_prompt>(&asked.prompt);
      chat != nullptr && asked.tools.kind == tool_choice_kind::none)
    chat->tools = value();
  host_.encode(model_, std::move(asked.prompt), asked.truncate_prompt_tokens == 0);
}

void session_core::encoded(encoded_prompt answer) {
  if (is_over_) return;
  args_.request.prompt = std::move(answer.prompt);
  if (const auto error = prepare(std::move(answer.ids), answer.written, pending_))
    return end_with(*error);
  if (args_.control->silenced) return cancel();
  use_.prompt_tokens = static_cast<std::int32_t>(prompt_->size());
  sampling_ = pending_.spec.sampling;
  if (!plan_.grammar || prompt_only_) return submit();
  compile_grammar order;
  order.client = args_.request.client;
  order.spec = std::move(*plan_.grammar);
  if (plan_.with_markers) order.markers = plan_.shown;
  if (const auto known = model_->grammars->cached(order)) return grammar(*known);
  order.abandoned = compile_abandoned_ = std::make_shared<std::atomic<bool>>(false);
  waits_for_grammar_ = true;
  host_.compile(order);
}

void session_core::grammar_overdue() {
  if (is_over_ || !waits_for_grammar_) return;
  if (args_.control->silenced) return cancel();
  end_with({errc::queue_timed_out,
            "the request waited for longer than `structured.wait_timeout` for the grammar of `" +
                plan_.grammar_field + "`, which compiles behind those of others; retry later",
            plan_.grammar_field});
}

void session_core::grammar(const grammar_answer& answer) {
  if (is_over_) return;
  waits_for_grammar_ = false;
  if (args_.control->silenced) return cancel();
  if (!answer.grammar.ok()) {
    const auto code = answer.grammar.code();
    const std::string field = plan_.grammar_field;
    return end_with({error_of(code),
                     "`" + field + "` cannot be enforced: " + answer.grammar.detail() +
                         (code == models::grammar::errc::overdue ? "; retry later" : ""),
                     field});
  }
  auto rules = std::make_shared<output_rules>();
  rules->grammar = answer.grammar.value();
  rules->tokens = answer.tokens;
  rules->is_json = plan_.is_json;
  rules->begins_in_reasoning = plan_.reading.begins_in_reasoning;
  rules->reasoning_begin_token = plan_.reasoning_begin_token;
  if (plan_.reading.thoughts) rules->reasoning_end = plan_.reading.thoughts->end;
  pending_.spec.rules = std::move(rules);
  submit();
}

/// Returns event::continuity, a text that identifies all that the output depends on. It is made
/// from served_model::continuity, the prompt's tokens and the tokens that end an output. The
/// prompt's tokens depend on the template, the tokenizer and the part of a chat that fits the
/// context.
std::string session_core::name_continuity() const {
  const auto sum_of = [](const std::vector<std::int32_t>& ids) {
    return models::offload::checksum(ids.data(),
                                     std::ssize(ids) * std::int64_t{sizeof(std::int32_t)});
  };
  const std::array parts{model_->continuity, sum_of(*prompt_), sum_of(*pending_.spec.stop_ids)};
  std::array<char, 16> digits{};
  const auto sum = models::offload::checksum(parts.data(), sizeof parts);
  return {digits.data(), std::to_chars(digits.begin(), digits.end(), sum, 16).ptr};
}

void session_core::submit() {
  continuity_ = name_continuity();
  const std::string& continues = args_.request.continues;
  if (!continues.empty() && continues != continuity_)
    return end_with({errc::model_changed,
                     "the request began with other files, another template, program or processor "
                     "than the model has now, so that it cannot go on as it would have; send it "
                     "anew",
                     ""});
  const auto& params = *sampling_;
  choices_.reserve(static_cast<std::size_t>(params.n));
  for (std::int32_t i = 0; i < params.n; ++i)
    choices_.emplace_back(*model_->files->text, params,
                          std::holds_alternative<chat_prompt>(args_.request.prompt), plan_,
                          args_.request.parse_output);
  if (const auto error = replay_made()) return end_with(*error);
  if (prompt_only_ && !pending_.spec.scores_prompt() && !pending_.spec.is_pooled()) {
    event e;
    e.started = true;
    e.continuity = continuity_;
    return answer_prompt(std::move(e));
  }
  in_batcher_ = true;
  stats_.waits();
  host_.submit(pending_);
}

/// Brings the choices to the state that the earlier run of the request had reached: the text that
/// is not sent yet (it may begin a stop string), the parsers and the counts of tokens.
std::optional<request_error> session_core::replay_made() {
  if (pending_.made == nullptr) return std::nullopt;
  const request_error over{errc::executor_failed,
                           "what an earlier run has drawn of this request is over already; send "
                           "the request anew",
                           ""};
  const auto most = static_cast<std::size_t>(pending_.spec.max_new);
  for (std::int32_t i = 0; i < pending_.n_choices; ++i) {
    choice_output& choice = choices_[static_cast<std::size_t>(i)];
    const auto made = pending_.made_of(i);
    const bool was_over = pending_.is_over(i);
    const auto finish = choice.replay(made, *pending_.spec.stop_ids, pending_.spec.max_new);
    const bool by_length = finish == finish_reason::length;
    if (finish && !by_length && !was_over) return over;
    if (!was_over && made.size() >= most) {
      if (sampling_->max_tokens >= 0) return over;
      return request_error{errc::too_large,
                           "an earlier run has drawn " + std::to_string(made.size()) +
                               " tokens of this request, and the context and the KV cache now have "
                               "room for " +
                               std::to_string(most) + "; send a shorter request",
                           ""};
    }
    n_made_ += choice.n_tokens();
    use_.completion_tokens = n_made_; // so that a refusal reports no output tokens for this run
    if (!was_over) continue;
    choice.end();
    finished_choices_ += 1;
    any_length_ = any_length_ || by_length;
  }
  if (finished_choices_ == pending_.n_choices) return over;
  return std::nullopt;
}

void session_core::batcher_lost(const request_error& why) {
  if (is_over_ || !in_batcher_) return;
  if (stats_.has_run() || std::exchange(moved_, true)) return end_with(why);
  host_.submit(pending_);
}

void session_core::compiler_lost(const request_error& why) {
  if (waits_for_grammar_) end_with(why);
}

std::optional<request_error> session_core::prepare(result<std::vector<std::int32_t>> ids,
                                                   const std::string& written, submit_prompt& out) {
  request& asked = args_.request;
  if (!ids.ok()) {
    request_error error = to_request_error(ids.code(), ids.detail());
    if (error.param.empty())
      error.param = std::holds_alternative<chat_prompt>(asked.prompt) ? "messages" : "prompt";
    return error;
  }
  if (ids.value().empty())
    return request_error::of(errc::empty_prompt, {"prompt", "have at least 1 token", "0"});
  prompt_ = truncate_prompt(asked, std::move(ids).value());
  auto plan = plan_output(*model_, asked, written);
  if (!plan.ok()) return to_request_error(plan.code(), plan.detail());
  plan_ = std::move(plan).value();
  prompt_only_ = asked.sampling.max_tokens == 0;
  if (auto error = fill_submission(args_, *model_, plan_, prompt_, out)) return error;
  if (auto error = take_score_memory(out.spec)) return error;
  return pay(out);
}

std::optional<request_error> session_core::take_score_memory(const sequence_spec& spec) {
  if (!spec.scores_prompt()) return std::nullopt;
  const auto n = static_cast<std::int64_t>(spec.prompt->size());
  const auto bytes = score_memory::bytes_of(n, spec.prompt_logprobs);
  constexpr auto most = score_memory::most_bytes_of_request;
  if (bytes > most)
    return request_error::of(errc::invalid_argument,
                             {"prompt_logprobs",
                              "ask for less than " + format_bytes(most) + " of scores",
                              std::to_string(spec.prompt_logprobs) + " for " + std::to_string(n) +
                                  " prompt tokens, which is " + format_bytes(bytes) +
                                  "; ask for fewer alternatives, or give a shorter prompt"});
  if (score_memory_.take(bytes)) return std::nullopt;
  request_error busy{errc::queue_full,
                     "the scores of other prompts fill the memory for them; retry later",
                     "prompt_logprobs"};
  busy.retry_after_s = host_.retry_after_s();
  return busy;
}

/// Charges the tenant's budget for the prompt and the expected output.
std::optional<request_error> session_core::pay(const submit_prompt& out) {
  if (args_.budget == nullptr) return std::nullopt;
  std::int64_t output = 0;
  if (!prompt_only_)
    output = out.spec.sampling->max_tokens >= 0
                 ? out.spec.max_new
                 : std::min<std::int64_t>(out.spec.max_new, expected_output_tokens);
  std::int64_t made = 0; // an earlier run may have drawn more tokens than expected
  if (out.made != nullptr)
    for (const made_choice& one : *out.made)
      made += std::ssize(one.tokens);
  const std::int64_t tokens =
      static_cast<std::int64_t>(out.spec.prompt->size()) + std::max(output * out.n_choices, made);
  if (const auto wait_s = args_.budget->take(tokens, host_.now()))
    return rate_limited(*args_.budget, *wait_s);
  note_paid(tokens);
  return std::nullopt;
}

void session_core::note_paid(std::int64_t tokens) {
  paid_ = tokens;
  args_.control->charged_tokens = tokens;
}

void session_core::queued() {
  // If the request asks for scores (log-probabilities) of its prompt or for an embedding, its first
  // event is sent with these.
  if (is_over_ || pending_.spec.scores_prompt() || pending_.spec.is_pooled() ||
      std::exchange(started_, true))
    return;
  event e;
  e.started = true;
  e.continuity = continuity_;
  if (args_.request.echo_prompt_ids) e.prompt_ids = *prompt_;
  emit(std::move(e));
}

void session_core::scored(const prompt_scored& scores) {
  if (is_over_ || std::exchange(started_, true)) return;
  event e;
  e.started = true;
  e.continuity = continuity_;
  e.prompt_scores = to_prompt_scores(*model_->files->text, *prompt_, *scores.scores);
  if (prompt_only_) return answer_prompt(std::move(e));
  if (args_.request.echo_prompt_ids) e.prompt_ids = *prompt_;
  emit(std::move(e));
  if (args_.control->silenced) cancel(); // the client does not listen any more
}

/// Ends a request that generates nothing: `e` is its first event, and every choice is over.
void session_core::answer_prompt(event e) {
  if (args_.request.echo_prompt_ids) e.prompt_ids = *prompt_;
  any_length_ = true;
  emit(std::move(e));
  for (std::int32_t i = 0; i < sampling_->n; ++i) {
    event done;
    done.choice = i;
    done.finish = finish_reason::length;
    done.last = i + 1 == sampling_->n;
    emit(std::move(done));
  }
  if (in_batcher_) host_.release();
  close(false, nullptr);
}

void session_core::pooled(const prompt_pooled& result, steady_clock::time_point now) {
  if (is_over_) return;
  use_.cached_tokens = result.cached_tokens;
  stats_.progressed(result.scheduled, use_, now);
  event e;
  e.started = e.last = true;
  e.continuity = continuity_;
  e.embedding = result.values;
  e.finish = finish_reason::stop;
  emit(std::move(e));
  close(false, nullptr);
}

void session_core::token(const token_ready& drawn, steady_clock::time_point now) {
  if (is_over_) return;
  choice_output& choice = choices_[static_cast<std::size_t>(drawn.choice)];
  if (choice.is_over()) return; // a step that was prepared before a stop string was found drew this
  use_.cached_tokens = drawn.cached_tokens;
  stats_.progressed(drawn.scheduled, use_, now);
  use_.completion_tokens += 1;
  if (args_.budget != nullptr && use_.prompt_tokens + use_.completion_tokens > paid_) {
    args_.budget->spend(1, now);
    note_paid(paid_ + 1);
  }
  event e;
  e.choice = drawn.choice;
  e.tokens = {to_token_output(*model_->files->text, drawn)};
  choice.add(drawn, e);
  if (e.finish) {
    finished_choices_ += 1;
    any_length_ = any_length_ || e.finish == finish_reason::length;
    e.last = finished_choices_ == static_cast<std::int32_t>(choices_.size());
    // The batcher notices an end by id or by length itself; only the session notices a stop string.
    if (!drawn.stopped && !drawn.length) host_.finish_choice(drawn.choice);
  }
  const bool last = e.last;
  emit(std::move(e));
  if (last)
    close(false, nullptr);
  else if (args_.control->silenced)
    cancel(); // the client does not listen any more
}

void session_core::failed(const request_error& why) {
  in_batcher_ = false;
  end_with(why);
}

void session_core::cancel() {
  if (!is_over_) close(true, nullptr);
}

void session_core::expire() {
  end_with({errc::timed_out,
            "the deadline of the request passed after " + std::to_string(use_.completion_tokens) +
                " output tokens; ask for fewer tokens or set a longer timeout",
            ""});
}

void session_core::waited_too_long() {
  if (is_over_) return;
  if (in_batcher_) return host_.waited_too_long();
  end_with(actors::waited_too_long::error());
}

void session_core::end_with(const request_error& why) {
  if (is_over_) return;
  event e;
  e.error = why;
  rename_prompt(*e.error, args_.request.prompt_field);
  const bool full = why.code == errc::queue_full || why.code == errc::queue_timed_out;
  if (full && why.retry_after_s == 0) e.error->retry_after_s = host_.retry_after_s();
  e.last = true;
  emit(std::move(e));
  close(false, &why);
}

void session_core::emit(event e) {
  if (e.last) args_.control->ended = true;
  if (args_.control->silenced) return;
  e.use = use_;
  try {
    args_.on_event(std::move(e));
  } catch (const std::exception& error) {
    // Callbacks must not throw; other requests must not suffer if one does.
    log::error("the callback of request " + std::to_string(args_.id) + " threw an exception (" +
               error.what() + "); the request is cancelled");
    args_.control->silenced = true;
  }
}

/// Closes the request; `error` is the error that ended it, or null.
void session_core::close(bool aborted, const request_error* error) {
  is_over_ = true;
  if (compile_abandoned_) *compile_abandoned_ = true;
  if (in_batcher_ && (aborted || error != nullptr)) host_.release();
  // A request that failed before its first token used nothing.
  const bool used = error == nullptr || use_.completion_tokens > n_made_;
  const std::int64_t cost = used ? use_.prompt_tokens + use_.completion_tokens : 0;
  if (args_.budget != nullptr) args_.budget->settle(paid_, cost);
  note_paid(0);
  using kind = request_end::kind;
  request_end end;
  if (aborted) {
    end.how = kind::cancelled;
    end.status = "cancelled";
  } else if (error != nullptr) {
    end.how = kind::error;
    end.status = word_of(error->code);
  } else {
    end.how = any_length_ ? kind::length : kind::stop;
    end.status = any_length_ ? "length" : "stop";
  }
  end.use = use_;
  end.earlier_tokens = n_made_;
  end.n_choices = static_cast<std::int32_t>(choices_.size());
  for (const choice_output& choice : choices_)
    end.longest_choice = std::max(end.longest_choice, choice.n_tokens());
  end.sampling = sampling_.get();
  end.is_pooled = pending_.spec.is_pooled();
  stats_.ended(end);
  report_end(end);
  args_.on_event = nullptr;
  host_.on_over();
}

/// Reports the end of the request to the log and to request::on_end.
void session_core::report_end(const request_end& end) const {
  const bool logged = log::enabled(log::level::info);
  const auto& tell = args_.request.on_end;
  if (!logged && !tell) return;
  request_summary about;
  about.id = args_.id;
  about.client_id = args_.request.client_id;
  about.tenant = args_.request.tenant;
  if (model_) about.model = model_->id;
  about.use = end.use;
  about.status = end.status;
  about.failed = end.how == request_end::kind::error;
  about.called_tools = std::any_of(choices_.begin(), choices_.end(),
                                   [](const choice_output& c) { return c.whole_calls() > 0; });
  about.total = host_.now() - args_.submitted;
  stats_.describe(about);
  about.sampling = end.sampling;
  if (logged) log_request(about);
  if (tell) tell(about);
}

} // namespace twill::actors
