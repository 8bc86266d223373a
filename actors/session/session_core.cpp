#include "actors/session/session_core.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <exception>
#include <iterator>
#include <limits>
#include <random>
#include <utility>

#include "actors/executor/output_guard.hpp"
#include "actors/port/error_words.hpp"
#include "actors/session/request_log.hpp"
#include "actors/structured/grammar_answer.hpp"
#include "actors/structured/grammar_service.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/offload/streams/checksum.hpp"

namespace twill::actors {

namespace {

double seconds_of(steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

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

/// Returns the field that a detail of the form "`field` must be ..." names.
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

/// The ids as text, such as "[1, 2]"; a long list is given by its first ids and its length.
std::string listed(const std::vector<std::int32_t>& ids) {
  constexpr std::size_t most = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(ids.size(), most); ++i)
    out += (i > 0 ? ", " : "[") + std::to_string(ids[i]);
  return ids.size() > most ? out + ", ...] (" + std::to_string(ids.size()) + " ids)" : out + "]";
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
    : args_(std::move(args)), stats_(stats), host_(host) {}

void session_core::start(served_model_ptr model, const std::optional<request_error>& refusal) {
  if (is_over_) return;
  if (refusal) return end_with(*refusal);
  model_ = std::move(model);
  request& asked = args_.request;
  if (asked.pooling != pooling::none) drop_output(asked);
  if (const auto error = check_request()) return end_with(*error);
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

/// Returns event::continuity: the model's own part, the prompt's tokens and the tokens that end an
/// output. The prompt's tokens depend on the template, the tokenizer and the part of a chat that
/// fits the context.
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
  counted_waiting_ = true;
  count_for_tenant([](tenant_stats& s) { s.requests_waiting += 1; });
  host_.submit(pending_);
}

/// Brings the choices to the state that the earlier run had reached: text that is held back,
/// parsers and counts.
std::optional<request_error> session_core::replay_made() {
  if (pending_.made == nullptr) return std::nullopt;
  const request_error over{errc::executor_failed,
                           "what an earlier run has drawn of this request is over already; send "
                           "the request anew",
                           ""};
  const auto most = static_cast<std::size_t>(pending_.spec.max_new);
  for (std::int32_t i = 0; i < pending_.n_choices; ++i) {
    choice_state& c = choices_[static_cast<std::size_t>(i)];
    const auto made = pending_.made_of(i);
    c.finished = pending_.is_over(i);
    const auto finish = replay_choice(c, made);
    const bool by_length = finish == finish_reason::length;
    if (finish && !by_length && !c.finished) return over;
    if (!c.finished && made.size() >= most) {
      if (sampling_->max_tokens >= 0) return over;
      return request_error{errc::too_large,
                           "an earlier run has drawn " + std::to_string(made.size()) +
                               " tokens of this request, and the context and the KV cache now have "
                               "room for " +
                               std::to_string(most) + "; send a shorter request",
                           ""};
    }
    c.n_tokens = static_cast<std::int32_t>(made.size());
    n_made_ += c.n_tokens;
    use_.completion_tokens = n_made_; // so that a refusal reports no output tokens for this run
    if (!c.finished) continue;
    finished_choices_ += 1;
    any_length_ = any_length_ || by_length;
  }
  if (finished_choices_ == pending_.n_choices) return over;
  return std::nullopt;
}

/// The reason why the choice ends with the tokens in `made`; nullopt if it does not end.
std::optional<finish_reason> session_core::replay_choice(choice_state& c,
                                                         std::span<const std::int32_t> made) {
  const auto& ends = *pending_.spec.stop_ids;
  for (const std::int32_t id : made) {
    token_ready drawn;
    drawn.token = id;
    drawn.stopped = std::binary_search(ends.begin(), ends.end(), id);
    c.n_tokens += 1;
    drawn.length = !drawn.stopped && c.n_tokens >= pending_.spec.max_new;
    event e;
    append_text(c, drawn, e);
    if (c.parser) parse_text(c, e);
    if (e.finish) return e.finish;
  }
  return std::nullopt;
}

void session_core::batcher_lost(const request_error& why) {
  if (is_over_ || !in_batcher_) return;
  const bool drew = first_token_ != steady_clock::time_point{};
  if (drew || std::exchange(moved_, true)) return end_with(why);
  host_.submit(pending_);
}

void session_core::compiler_lost(const request_error& why) {
  if (waits_for_grammar_) end_with(why);
}

std::optional<request_error> session_core::check_request() const {
  const request& asked = args_.request;
  const served_model& model = *model_;
  if (!asked.model.empty() && asked.model != model.id)
    return request_error{errc::unknown_model,
                         "`model` must be \"" + model.id + "\", got \"" + asked.model + "\"",
                         "model"};
  const auto valid =
      config::validate(asked.sampling, args_.limits, model.files->text->vocab_size());
  if (!valid.ok()) return to_error(errc::invalid_argument, valid.error());
  const auto breach = [](const std::string& field, const std::string& must, std::int32_t got) {
    return request_error{errc::invalid_argument,
                         "`" + field + "` must be " + must + ", got " + std::to_string(got), field};
  };
  if (asked.prompt_logprobs < -1 || asked.prompt_logprobs > args_.limits.max_logprobs)
    return breach("prompt_logprobs",
                  "between 0 and " + std::to_string(args_.limits.max_logprobs) +
                      " (`limits.max_logprobs`)",
                  asked.prompt_logprobs);
  if (asked.truncate_prompt_tokens < 0)
    return breach("truncate_prompt_tokens", "at least 1", asked.truncate_prompt_tokens);
  const auto size = static_cast<std::int32_t>(model.files->spec.embedding_size);
  if (asked.dimensions != 0 && asked.dimensions != size)
    return breach("dimensions",
                  std::to_string(size) + " or absent (vectors of this model cannot be shortened)",
                  asked.dimensions);
  return std::nullopt;
}

std::optional<request_error> session_core::prepare(result<std::vector<std::int32_t>> ids,
                                                   const std::string& written, submit_prompt& out) {
  request& asked = args_.request;
  const auto& text = *model_->files->text;
  if (!ids.ok()) {
    request_error error = to_error(ids.code(), ids.error());
    if (error.param.empty())
      error.param = std::holds_alternative<chat_prompt>(asked.prompt) ? "messages" : "prompt";
    return error;
  }
  if (ids.value().empty())
    return request_error{errc::empty_prompt, "`prompt` must have at least 1 token, got 0",
                         "prompt"};
  auto& kept = ids.value();
  if (const auto most = static_cast<std::size_t>(asked.truncate_prompt_tokens);
      most > 0 && kept.size() > most) {
    if (asked.truncate_to_first)
      kept.resize(most);
    else
      kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(most));
  }
  prompt_ = std::make_shared<const std::vector<std::int32_t>>(std::move(kept));
  auto plan = plan_output(*model_, asked, written);
  if (!plan.ok()) return to_error(plan.code(), plan.error());
  plan_ = std::move(plan).value();
  auto sampling = std::make_shared<config::sampling_params>(std::move(asked.sampling));
  prompt_only_ = sampling->max_tokens == 0;
  out.request = args_.id;
  out.n_choices = prompt_only_ ? 1 : sampling->n;
  out.submitted = args_.submitted;
  out.client = args_.request.client;
  out.tenant = asked.tenant;
  out.client_id = asked.client_id;
  out.priority = asked.priority;
  if (args_.tenant != nullptr)
    out.limits = {args_.tenant->weight, args_.tenant->max_running, args_.tenant->max_queued};
  out.spec.cache_scope = args_.cache_scope;
  out.spec.pooling = asked.pooling;
  out.spec.prompt = prompt_;
  out.spec.stop_ids = stop_ids_of(text, *sampling);
  out.spec.seed = sampling->seed ? *sampling->seed : drawn_seed();
  out.spec.sampling = std::move(sampling);
  if (!asked.made.empty()) {
    if (auto error = check_made(*out.spec.sampling)) return error;
    out.made = std::make_shared<const std::vector<made_choice>>(std::move(asked.made));
  } else {
    // otherwise the earlier run has reported the scores
    out.spec.prompt_logprobs = asked.prompt_logprobs;
  }
  if (auto error = set_token_rules(out.spec)) return error;
  if (auto error = set_max_new(out.spec)) return error;
  if (auto error = take_score_memory(out.spec)) return error;
  return pay(out);
}

std::optional<request_error> session_core::check_made(const config::sampling_params& params) const {
  const auto& made = args_.request.made;
  const auto n_ids = static_cast<std::int32_t>(model_->files->spec.vocab_size);
  const bool fits = made.size() == static_cast<std::size_t>(params.n) && params.max_tokens != 0 &&
                    std::all_of(made.begin(), made.end(), [&](const made_choice& one) {
                      return std::all_of(one.tokens.begin(), one.tokens.end(),
                                         [&](auto id) { return id >= 0 && id < n_ids; });
                    });
  if (fits) return std::nullopt;
  return request_error{errc::executor_failed,
                       "what an earlier run has drawn of this request cannot be its output: it "
                       "needs an entry for each choice, with token ids of this model; send the "
                       "request anew",
                       ""};
}

std::optional<request_error> session_core::take_score_memory(const sequence_spec& spec) {
  if (!spec.scores_prompt()) return std::nullopt;
  const auto n = static_cast<std::int64_t>(spec.prompt->size());
  const auto bytes = score_memory::bytes_of(n, spec.prompt_logprobs);
  constexpr auto most = score_memory::most_bytes_of_request;
  if (bytes > most)
    return request_error{errc::invalid_argument,
                         "`prompt_logprobs` must ask for less than " + format_bytes(most) +
                             " of scores, got " + std::to_string(spec.prompt_logprobs) + " for " +
                             std::to_string(n) + " prompt tokens, which is " + format_bytes(bytes) +
                             "; ask for fewer alternatives, or give a shorter prompt",
                         "prompt_logprobs"};
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
  if (const auto wait_s = args_.budget->take(tokens, steady_clock::now()))
    return rate_limited(*args_.budget, *wait_s);
  note_paid(tokens);
  return std::nullopt;
}

void session_core::note_paid(std::int64_t tokens) {
  paid_ = tokens;
  args_.control->charged_tokens = tokens;
}

std::optional<request_error> session_core::set_token_rules(sequence_spec& spec) const {
  const config::sampling_params& params = *spec.sampling;
  if (!params.bad_words.empty()) {
    auto words = tokens_of_words(*model_->files->text, params.bad_words);
    if (!words.ok()) return to_error(words.code(), words.error());
    spec.bad_words =
        std::make_shared<const std::vector<std::vector<std::int32_t>>>(std::move(words).value());
  }
  if (params.allowed_token_ids.empty()) return std::nullopt;
  if (plan_.grammar)
    return request_error{errc::invalid_argument,
                         "`allowed_token_ids` must be absent beside `" + plan_.grammar_field +
                             "`, which decides which tokens may follow, got " +
                             listed(params.allowed_token_ids),
                         "allowed_token_ids"};
  spec.allowed = std::make_shared<const std::vector<std::uint32_t>>(mask_of(
      params.allowed_token_ids, std::max(static_cast<std::int32_t>(model_->files->spec.vocab_size),
                                         model_->files->text->vocab_size())));
  return std::nullopt;
}

std::optional<request_error> session_core::set_max_new(sequence_spec& spec) const {
  const std::int64_t prompt = static_cast<std::int64_t>(spec.prompt->size());
  const std::int64_t context = model_->max_context_tokens;
  // The last drawn token needs no place in the KV cache, because no step reads it.
  const std::int64_t capacity = model_->kv_tokens + 1;
  const bool chat = std::holds_alternative<chat_prompt>(args_.request.prompt);
  std::int64_t wanted = spec.sampling->max_tokens;
  const bool asked = wanted >= 0 && !args_.request.shorten_output;
  if (wanted < 0 && chat && args_.limits.default_max_tokens > 0)
    wanted = args_.limits.default_max_tokens;
  const std::string with_prompt = std::to_string(prompt) + " prompt tokens";
  // A prompt without output may fill the whole context.
  if (prompt >= context + (prompt_only_ ? 1 : 0))
    return request_error{errc::context_too_long,
                         std::string("`prompt` must be ") + (prompt_only_ ? "<= " : "< ") +
                             std::to_string(context) + " tokens (the context limit), got " +
                             std::to_string(prompt),
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
  // A step draws a token after the prompt in any case; the session drops it.
  if (prompt_only_) spec.max_new = 1;
  return std::nullopt;
}

void session_core::queued() {
  // The first event of a scored prompt is sent with its scores, and that of a pooled prompt with
  // its result.
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
  const auto& text = *model_->files->text;
  const auto named = [&](std::int32_t id, float logprob) {
    return token_logprob{id, text.token_bytes(id, true), logprob, text.is_special(id)};
  };
  event e;
  e.started = true;
  e.continuity = continuity_;
  e.prompt_scores.reserve(prompt_->size());
  for (std::size_t i = 0; i < prompt_->size(); ++i) {
    token_output& out = e.prompt_scores.emplace_back();
    if (i == 0) {
      out.chosen = named((*prompt_)[i], std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const prompt_score& score = (*scores.scores)[i - 1];
    out.chosen = named((*prompt_)[i], score.logprob);
    out.top.reserve(score.top.size());
    for (const auto& [id, logprob] : score.top)
      out.top.push_back(named(id, logprob));
  }
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
  note_times(result.scheduled, result.cached_tokens, now);
  event e;
  e.started = e.last = true;
  e.continuity = continuity_;
  e.embedding = result.values;
  e.finish = finish_reason::stop;
  use_.cached_tokens = result.cached_tokens;
  emit(std::move(e));
  close(false, nullptr);
}

void session_core::token(const token_ready& drawn, steady_clock::time_point now) {
  if (is_over_) return;
  choice_state& c = choices_[static_cast<std::size_t>(drawn.choice)];
  if (c.finished) return; // a step that was prepared before a stop string was found drew this token
  note_times(drawn.scheduled, drawn.cached_tokens, now);
  c.n_tokens += 1;
  use_.completion_tokens += 1;
  if (args_.budget != nullptr && use_.prompt_tokens + use_.completion_tokens > paid_) {
    args_.budget->spend(1, now);
    note_paid(paid_ + 1);
  }
  use_.cached_tokens = drawn.cached_tokens;
  event e;
  e.choice = drawn.choice;
  fill_tokens(drawn, e);
  append_text(c, drawn, e);
  if (c.parser) parse_text(c, e);
  if (e.finish) {
    c.finished = true;
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

void session_core::append_text(choice_state& c, const token_ready& drawn, event& e) {
  const auto& params = *sampling_;
  std::string text;
  if (!drawn.stopped || params.include_stop_str_in_output) text = c.detokenize.push(drawn.token);
  if (drawn.stopped || drawn.length) text += c.detokenize.flush();
  bool found = false;
  if (c.n_tokens < params.min_tokens)
    c.stops.pass(text, e.text); // before min_tokens stop strings do not end the output
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

/// Parses text that became final into parts of the output.
void session_core::parse_text(choice_state& c, event& e) {
  using kind = models::tool_calls::call_event_kind;
  auto read = c.parser->push(e.text);
  if (e.finish)
    for (auto& late : c.parser->finish())
      read.push_back(std::move(late));
  e.text.clear();
  e.parts.reserve(read.size());
  for (auto& r : read) {
    output_part part;
    switch (r.kind) {
    case kind::text:
      part.kind = output_part_kind::text;
      break;
    case kind::reasoning:
      part.kind = output_part_kind::reasoning;
      break;
    case kind::call_begin:
      part.kind = output_part_kind::call_begin;
      break;
    case kind::call_arguments:
      part.kind = output_part_kind::call_arguments;
      break;
    case kind::call_end:
      part.kind = output_part_kind::call_end;
      c.whole_calls += r.complete ? 1 : 0;
      break;
    }
    part.text = std::move(r.bytes);
    part.call_id = std::move(r.id);
    part.call = r.call;
    part.complete = r.complete;
    e.parts.push_back(std::move(part));
  }
  if (e.finish == finish_reason::stop && c.whole_calls > 0) e.finish = finish_reason::tool_calls;
}

void session_core::fill_tokens(const token_ready& drawn, event& e) const {
  const auto& text = *model_->files->text;
  e.tokens.resize(1);
  token_output& out = e.tokens.front();
  out.chosen = {drawn.token, text.token_bytes(drawn.token, true), drawn.logprob,
                text.is_special(drawn.token)};
  out.top.reserve(drawn.top.size());
  for (const auto& [id, logprob] : drawn.top)
    out.top.push_back({id, text.token_bytes(id, true), logprob, text.is_special(id)});
}

void session_core::note_times(steady_clock::time_point scheduled, std::int32_t cached_tokens,
                              steady_clock::time_point now) {
  if (first_token_ == steady_clock::time_point{}) {
    first_token_ = now;
    scheduled_ = scheduled;
    stats_.update([&](engine_stats& s) {
      observe(s.time_to_first_token_seconds, seconds_of(now - args_.submitted));
    });
    count_for_tenant([&](tenant_stats& s) {
      if (std::exchange(counted_waiting_, false)) s.requests_waiting -= 1;
      s.requests_running += 1;
      count_prompt(s);
      s.cached_prompt_tokens += static_cast<std::uint64_t>(cached_tokens);
      observe(s.time_to_first_token_seconds, seconds_of(now - args_.submitted));
      observe(s.request_queue_time_seconds, seconds_of(scheduled - args_.submitted));
    });
  }
  last_token_ = now;
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
  stats_.update([&](engine_stats& s) {
    if (aborted)
      s.finished_abort += 1;
    else if (error != nullptr)
      s.finished_error += 1;
    else
      (any_length_ ? s.finished_length : s.finished_stop) += 1;
    if (aborted || error != nullptr || first_token_ == steady_clock::time_point{}) return;
    observe(s.e2e_request_latency_seconds, seconds_of(last_token_ - args_.submitted));
    observe(s.request_queue_time_seconds, seconds_of(scheduled_ - args_.submitted));
    observe(s.request_prefill_time_seconds, seconds_of(first_token_ - scheduled_));
    observe(s.request_decode_time_seconds, seconds_of(last_token_ - first_token_));
    observe(s.request_inference_time_seconds, seconds_of(last_token_ - scheduled_));
    observe(s.request_prompt_tokens, use_.prompt_tokens);
    observe(s.request_generation_tokens, use_.completion_tokens);
    std::int32_t most = 0;
    for (const auto& c : choices_)
      most = std::max(most, c.n_tokens);
    observe(s.request_max_num_generation_tokens, most);
    observe(s.request_params_n, sampling_->n);
    if (sampling_->max_tokens >= 0 && !pending_.spec.is_pooled())
      observe(s.request_params_max_tokens, sampling_->max_tokens);
    // Choices are drawn in parallel, so this is the mean of one choice only if there is one.
    if (const auto gaps = most - n_made_ - 1; choices_.size() == 1 && gaps > 0)
      observe(s.request_time_per_output_token_seconds,
              seconds_of(last_token_ - first_token_) / gaps);
  });
  const std::string_view status = aborted            ? "cancelled"
                                  : error != nullptr ? word_of(error->code)
                                  : any_length_      ? "length"
                                                     : "stop";
  count_end(status);
  report_end(status, error != nullptr);
  args_.on_event = nullptr;
  host_.on_over();
}

template <class F>
void session_core::count_for_tenant(F&& change) {
  stats_.update_tenant(args_.request.tenant, model_ ? model_->id : "", std::forward<F>(change));
}

void session_core::count_prompt(tenant_stats& s) {
  if (!std::exchange(counted_prompt_, true))
    s.prompt_tokens += static_cast<std::uint64_t>(use_.prompt_tokens);
}

void session_core::count_end(std::string_view status) {
  const bool ran = first_token_ != steady_clock::time_point{};
  const bool whole = status == "stop" || status == "length";
  count_for_tenant([&](tenant_stats& s) {
    if (std::exchange(counted_waiting_, false)) s.requests_waiting -= 1;
    if (ran) s.requests_running -= 1;
    const auto known = s.finished.find(status);
    if (known != s.finished.end())
      known->second += 1;
    else
      s.finished.emplace(status, 1);
    s.generation_tokens += static_cast<std::uint64_t>(use_.completion_tokens - n_made_);
    // A scored prompt and a request whose client left have no token. They are counted here as they
    // are charged to the tenant's budget.
    if (whole || status == "cancelled") count_prompt(s);
    if (!ran || !whole) return;
    observe(s.e2e_request_latency_seconds, seconds_of(last_token_ - args_.submitted));
    // Choices are drawn in parallel, so this is the mean of one choice only if there is one.
    const auto gaps = use_.completion_tokens - n_made_ - 1;
    if (gaps > 0 && choices_.size() == 1)
      observe(s.time_per_output_token_seconds, seconds_of(last_token_ - first_token_) / gaps);
  });
}

/// Reports the end of the request to the log and to request::on_end.
void session_core::report_end(std::string_view status, bool failed) const {
  const bool logged = log::enabled(log::level::info);
  const auto& tell = args_.request.on_end;
  if (!logged && !tell) return;
  request_summary about;
  about.id = args_.id;
  about.client_id = args_.request.client_id;
  about.tenant = args_.request.tenant;
  if (model_) about.model = model_->id;
  about.use = use_;
  about.status = status;
  about.failed = failed;
  about.called_tools = std::any_of(choices_.begin(), choices_.end(),
                                   [](const choice_state& c) { return c.whole_calls > 0; });
  about.arrived = args_.submitted;
  about.total = steady_clock::now() - args_.submitted;
  if (first_token_ != steady_clock::time_point{}) {
    about.queued = scheduled_ - args_.submitted;
    about.first_token = first_token_ - args_.submitted;
    about.last_token = last_token_ - args_.submitted;
  }
  about.sampling = sampling_.get();
  if (logged) log_request(about);
  if (tell) tell(about);
}

} // namespace twill::actors
