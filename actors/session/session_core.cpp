#include "actors/session/session_core.hpp"

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "actors/session/prompt.hpp"
#include "config/base/log.hpp"

namespace twill::actors {

namespace {

double seconds_of(steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

/// The field that a detail of the form "`field` must be ..." names.
std::string field_of(const std::string& detail) {
  const auto first = detail.find('`');
  const auto last = first == std::string::npos ? first : detail.find('`', first + 1);
  return last == std::string::npos ? std::string() : detail.substr(first + 1, last - first - 1);
}

template <class E>
request_error to_error(errc code, const failure<E>& f) {
  return {code, f.detail, field_of(f.detail)};
}

std::uint64_t drawn_seed() {
  std::random_device source;
  return (static_cast<std::uint64_t>(source()) << 32) | source();
}

token_ids stop_ids_of(const models::tokenizer& text, const config::sampling_params& params) {
  std::vector<std::int32_t> ids = params.stop_token_ids;
  if (!params.ignore_eos) ids.insert(ids.end(), text.end_ids().begin(), text.end_ids().end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
}

} // namespace

session_core::session_core(session_args args, stats_board& stats, session_host& host)
    : args_(std::move(args)), stats_(stats), host_(host) {}

void session_core::start(served_model_ptr model, const std::optional<request_error>& refusal) {
  if (over_) return;
  if (refusal) return end_with(*refusal);
  model_ = std::move(model);
  submit_prompt prompt;
  if (const auto error = prepare(prompt)) return end_with(*error);
  if (args_.control->silenced) return cancel();
  use_.prompt_tokens = static_cast<std::int32_t>(prompt_->size());
  sampling_ = prompt.spec.sampling;
  const auto& params = *sampling_;
  choices_.reserve(static_cast<std::size_t>(params.n));
  for (std::int32_t i = 0; i < params.n; ++i)
    choices_.emplace_back(*model_->files->text, params,
                          std::holds_alternative<chat_prompt>(args_.request.prompt));
  in_batcher_ = true;
  host_.submit(prompt);
}

std::optional<request_error> session_core::prepare(submit_prompt& out) {
  const served_model& model = *model_;
  if (!args_.request.model.empty() && args_.request.model != model.id)
    return request_error{
        errc::unknown_model,
        "`model` must be \"" + model.id + "\", got \"" + args_.request.model + "\"", "model"};
  const auto& text = *model.files->text;
  const auto valid = config::validate(args_.request.sampling, args_.limits, text.vocab_size());
  if (!valid.ok()) return to_error(errc::invalid_argument, valid.error());
  auto ids = encode_prompt(model, args_.request.prompt);
  if (!ids.ok()) {
    request_error error = to_error(ids.code(), ids.error());
    if (error.param.empty())
      error.param =
          std::holds_alternative<chat_prompt>(args_.request.prompt) ? "messages" : "prompt";
    return error;
  }
  if (ids.value().empty())
    return request_error{errc::empty_prompt, "`prompt` must have at least 1 token, got 0",
                         "prompt"};
  prompt_ = std::make_shared<const std::vector<std::int32_t>>(std::move(ids).value());
  auto sampling = std::make_shared<config::sampling_params>(std::move(args_.request.sampling));
  out.request = args_.id;
  out.n_choices = sampling->n;
  out.submitted = args_.submitted;
  out.spec.prompt = prompt_;
  out.spec.stop_ids = stop_ids_of(text, *sampling);
  out.spec.seed = sampling->seed ? *sampling->seed : drawn_seed();
  out.spec.sampling = std::move(sampling);
  return set_max_new(out.spec);
}

std::optional<request_error> session_core::set_max_new(sequence_spec& spec) const {
  const std::int64_t prompt = static_cast<std::int64_t>(spec.prompt->size());
  const std::int64_t context = model_->max_context_tokens;
  // The last token drawn needs no place in the KV cache.
  const std::int64_t capacity = model_->kv_tokens + 1;
  const bool chat = std::holds_alternative<chat_prompt>(args_.request.prompt);
  std::int64_t wanted = spec.sampling->max_tokens;
  const bool asked = wanted >= 0;
  if (!asked && chat && args_.limits.default_max_tokens > 0)
    wanted = args_.limits.default_max_tokens;
  const std::string with_prompt = std::to_string(prompt) + " prompt tokens";
  if (prompt >= context)
    return request_error{errc::context_too_long,
                         "`prompt` must be < " + std::to_string(context) +
                             " tokens (the context limit), got " + std::to_string(prompt),
                         chat ? "messages" : "prompt"};
  if (asked && prompt + wanted > context)
    return request_error{errc::context_too_long,
                         "`max_tokens` must be <= " + std::to_string(context - prompt) + " with " +
                             with_prompt + " (the context limit is " + std::to_string(context) +
                             "), got " + std::to_string(wanted),
                         "max_tokens"};
  if (prompt >= capacity || (asked && prompt + wanted > capacity))
    return request_error{errc::too_large,
                         "the prompt and `max_tokens` together must be <= " +
                             std::to_string(capacity) + " tokens (the KV cache), got " +
                             std::to_string(prompt + std::max<std::int64_t>(wanted, 1)),
                         "max_tokens"};
  const std::int64_t most = std::min(context, capacity) - prompt;
  spec.max_new = static_cast<std::int32_t>(wanted < 0 ? most : std::min(wanted, most));
  return std::nullopt;
}

void session_core::queued() {
  if (over_) return;
  event e;
  e.started = true;
  if (args_.request.echo_prompt_ids) e.prompt_ids = *prompt_;
  emit(std::move(e));
}

void session_core::token(const token_ready& drawn, steady_clock::time_point now) {
  if (over_) return;
  choice_state& c = choices_[static_cast<std::size_t>(drawn.choice)];
  if (c.finished) return; // drawn by a step that was prepared before a stop string was found
  note_times(drawn, now);
  c.n_tokens += 1;
  use_.completion_tokens += 1;
  use_.cached_tokens = drawn.cached_tokens;
  event e;
  e.choice = drawn.choice;
  fill_tokens(drawn, e);
  append_text(c, drawn, e);
  if (e.finish) {
    c.finished = true;
    finished_choices_ += 1;
    any_length_ = any_length_ || e.finish == finish_reason::length;
    e.last = finished_choices_ == static_cast<std::int32_t>(choices_.size());
    // The batcher knows of ends by id and by length; a stop string only the session sees.
    if (!drawn.stopped && !drawn.length) host_.finish_choice(drawn.choice);
  }
  const bool last = e.last;
  if (last) over_ = true;
  emit(std::move(e));
  if (last)
    close(false, false);
  else if (args_.control->silenced)
    cancel(); // nobody listens any more
}

void session_core::append_text(choice_state& c, const token_ready& drawn, event& e) {
  const auto& params = *sampling_;
  std::string text;
  if (!drawn.stopped || params.include_stop_str_in_output) text = c.detokenize.push(drawn.token);
  if (drawn.stopped || drawn.length) text += c.detokenize.flush();
  bool found = false;
  if (c.n_tokens < params.min_tokens)
    c.stops.pass(text, e.text); // before min_tokens nothing stops
  else
    found = c.stops.push(text, e.text);
  if (found) {
    e.finish = finish_reason::stop;
    e.stop_string = c.stops.found();
  } else if (drawn.stopped || drawn.length) {
    c.stops.flush(e.text);
    e.finish = drawn.stopped ? finish_reason::stop : finish_reason::length;
    if (drawn.stopped) e.stop_token = drawn.token;
  }
}

void session_core::fill_tokens(const token_ready& drawn, event& e) const {
  const auto& text = *model_->files->text;
  e.tokens.resize(1);
  token_output& out = e.tokens.front();
  out.chosen = {drawn.token, text.token_bytes(drawn.token, true), drawn.logprob};
  out.top.reserve(drawn.top.size());
  for (const auto& [id, logprob] : drawn.top)
    out.top.push_back({id, text.token_bytes(id, true), logprob});
}

void session_core::note_times(const token_ready& drawn, steady_clock::time_point now) {
  if (first_token_ == steady_clock::time_point{}) {
    first_token_ = now;
    scheduled_ = drawn.scheduled;
    stats_.update([&](engine_stats& s) {
      observe(s.time_to_first_token_seconds, seconds_of(now - args_.submitted));
    });
  }
  last_token_ = now;
}

void session_core::failed(const request_error& why) {
  in_batcher_ = false;
  end_with(why);
}

void session_core::cancel() {
  if (over_) return;
  over_ = true;
  close(true, false);
}

void session_core::expire() {
  end_with({errc::timed_out,
            "the deadline of the request passed after " + std::to_string(use_.completion_tokens) +
                " output tokens; ask for fewer tokens or set a longer timeout",
            ""});
}

void session_core::end_with(const request_error& why) {
  if (over_) return;
  over_ = true;
  event e;
  e.error = why;
  e.last = true;
  emit(std::move(e));
  close(false, true);
}

void session_core::emit(event e) {
  if (args_.control->silenced) return;
  e.use = use_;
  try {
    args_.on_event(std::move(e));
  } catch (const std::exception& error) {
    // The contract forbids it; the other requests must not pay for it.
    log::error("the callback of request " + std::to_string(args_.id) + " threw an exception (" +
               error.what() + "); the request is cancelled");
    args_.control->silenced = true;
  }
}

void session_core::close(bool aborted, bool error) {
  over_ = true;
  if (in_batcher_ && (aborted || error)) host_.release();
  stats_.update([&](engine_stats& s) {
    if (aborted)
      s.finished_abort += 1;
    else if (error)
      s.finished_error += 1;
    else
      (any_length_ ? s.finished_length : s.finished_stop) += 1;
    if (aborted || error || first_token_ == steady_clock::time_point{}) return;
    observe(s.e2e_request_latency_seconds, seconds_of(last_token_ - args_.submitted));
    observe(s.request_queue_time_seconds, seconds_of(scheduled_ - args_.submitted));
    observe(s.request_prefill_time_seconds, seconds_of(first_token_ - scheduled_));
    observe(s.request_decode_time_seconds, seconds_of(last_token_ - first_token_));
    observe(s.request_prompt_tokens, use_.prompt_tokens);
    observe(s.request_generation_tokens, use_.completion_tokens);
  });
  if (log::enabled(log::level::debug))
    log::debug("request " + std::to_string(args_.id) +
               (args_.request.client_id.empty() ? "" : " (" + args_.request.client_id + ")") +
               (aborted ? " was cancelled"
                : error ? " failed"
                        : " finished") +
               " after " + std::to_string(use_.prompt_tokens) + " prompt and " +
               std::to_string(use_.completion_tokens) + " output tokens");
  args_.on_event = nullptr;
  host_.over();
}

} // namespace twill::actors
