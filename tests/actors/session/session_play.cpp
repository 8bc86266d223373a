#include "tests/actors/session/session_play.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include "actors/port/error_words.hpp"
#include "actors/structured/grammar_answer.hpp"
#include "tests/actors/session/piece_vocabulary.hpp"
#include "tests/actors/session/written_event.hpp"

namespace session_tests {

using namespace twill;
using namespace twill::actors;
using test::demand;
using test::demand_equal;
using test::operation;

namespace {

constexpr std::int64_t per_minute = 60; ///< the rate of the budget: a token a second

/// Long after everything that happens here, so that time does not refill the budget.
const auto much_later = drawn_after + std::chrono::hours(24 * 365 * 100);

float logprob_of(std::uint32_t number) {
  return -static_cast<float>(number % 64) / 4;
}

std::vector<std::pair<std::int32_t, float>> some_top(std::uint32_t number) {
  std::vector<std::pair<std::int32_t, float>> top;
  for (std::uint32_t i = 0; i < number % 3; ++i)
    top.emplace_back(static_cast<std::int32_t>((number / 3 + i) % piece_vocabulary::n_pieces),
                     logprob_of(number / 5 + i));
  return top;
}

} // namespace

session_play::session_play(made_up_request from) : request_(std::move(from)) {
  begin({});
}

session_play::~session_play() = default;

std::size_t session_play::n_choices() const {
  return static_cast<std::size_t>(request_.asked.sampling.n);
}

void session_play::encode(served_model_ptr, prompt_variant prompt, bool to_context) {
  to_encode_ = std::move(prompt);
  to_context_ = to_context;
}

void session_play::hear(const event& e) {
  heard_.push_back(written(e));
  last_without_use_ = written(e, false);
  if (e.started) continuity_ = e.continuity;
  made_choice& to = delivered_[static_cast<std::size_t>(e.choice)];
  for (const auto& one : e.tokens)
    to.tokens.push_back(one.chosen.id);
  to.finished = to.finished || e.finish.has_value();
  const auto how = std::exchange(next_event_, listening::as_usual);
  if (how != listening::as_usual) left_at_ = heard_.size();
  if (how == listening::leaves) control_->silenced = true;
  if (how == listening::throws) throw std::runtime_error("its client's callback");
}

/// Another core takes over the request, with the output that the client has received.
void session_play::begin(const operation& op) {
  core_.reset();
  demand_equal(score_memory::taken_by_all(), 0, "the memory of scores without a session");
  digits how(op.b);
  now_ = {};
  const bool is_whole =
      !delivered_.empty() && std::all_of(delivered_.begin(), delivered_.end(),
                                         [](const made_choice& one) { return one.finished; });
  if (is_whole && !how.one_in(8)) delivered_.clear(); // the next request is another one
  made_ = delivered_;
  const bool has_tokens = std::any_of(made_.begin(), made_.end(), [](const made_choice& one) {
    return !one.tokens.empty() || one.finished;
  });
  if (!has_tokens && !how.one_in(2)) made_.clear();
  if (!made_.empty()) {
    now_.goes_on = true;
    made_choice& some = made_[how.below(static_cast<std::uint32_t>(made_.size()))];
    if (how.one_in(12)) some.tokens.push_back(piece_vocabulary::n_pieces + 2);
    if (how.one_in(12)) some.finished = false;
    if (how.one_in(12)) made_.emplace_back();
  }
  if (made_.empty()) delivered_.assign(n_choices(), {});
  other_model_ = false;
  request asked = request_.asked;
  asked.made = made_;
  if (!made_.empty() && how.one_in(2)) {
    asked.continues = continuity_;
    other_model_ = how.one_in(8) && !continuity_.empty();
    if (other_model_) asked.continues += "0";
  }
  asked.on_end = [this](const request_summary& about) {
    received_.push_back(about);
    received_.back().sampling = nullptr;
    demand(about.sampling == nullptr ||
               about.sampling->max_tokens == request_.asked.sampling.max_tokens,
           "what was in force");
  };
  finished_.clear();
  submitted_.clear();
  orders_.clear();
  heard_.clear();
  received_.clear();
  to_encode_.reset();
  n_released_ = n_waited_ = n_over_ = 0;
  left_at_ = 0;
  next_event_ = listening::as_usual;
  call_at_.assign(n_choices(), 0);
  board_ = std::make_unique<stats_board>();
  control_ = std::make_shared<request_control>();
  budget_.reset();
  if (request_.has_budget) {
    budget_ = std::make_unique<token_budget>(per_minute);
    budget_->check(0, much_later);
    budget_->take(request_.used_before, much_later);
  }
  held_by_callback_ = std::make_shared<int>(0);
  session_args args;
  args.id = 3;
  args.request = std::move(asked);
  args.on_event = [this, held = held_by_callback_](const event& e) { hear(e); };
  args.control = control_;
  args.limits = request_.options;
  args.submitted = submitted_at;
  args.budget = {std::shared_ptr<void>(), budget_.get()};
  args.cache_scope = 5;
  core_ = std::make_unique<session_core>(std::move(args), *board_, *this);
  compare();
}

void session_play::perform(const operation& op) {
  ++tick_;
  const std::uint32_t kind = op.kind % 160;
  if ((kind >= 146 && kind < 154) || (now_.over && kind % 3 == 0))
    begin(op);
  else if (now_.over)
    stray(op);
  else if (kind >= 128)
    disturb(op);
  else
    go_on(op);
  compare();
}

void session_play::go_on(const operation& op) {
  switch (now_.at) {
  case stage::fresh:
    return start(op);
  case stage::encoding:
    return encoded(op);
  case stage::compiling:
    return compiled(op);
  case stage::submitted:
    core_->queued();
    now_.at = scores() ? stage::scoring : stage::drawing;
    if (!scores() && !std::exchange(now_.announced, true)) expect_event(first_event());
    return;
  case stage::scoring:
    return scored(op);
  case stage::drawing:
    return draw(op);
  }
}

void session_play::start(const operation& op) {
  std::optional<request_error> refusal;
  if (op.a % 90 == 89) refusal = request_error{errc::not_ready, "it loads", ""};
  core_->start(request_.model, refusal);
  if (refusal) return expect_error(errc::not_ready);
  if (!request_.asked.model.empty()) return expect_error(errc::unknown_model, "model");
  now_.at = stage::encoding;
  demand(to_encode_.has_value(), "a prompt is to be encoded");
  demand_equal(to_context_, request_.asked.truncate_prompt_tokens == 0,
               "whether a prompt must fit as a whole");
  if (const auto* chat = std::get_if<chat_prompt>(&*to_encode_))
    demand(chat->tools.is_null() == (request_.asked.tools.kind == tool_choice_kind::none ||
                                     std::get<chat_prompt>(request_.asked.prompt).tools.is_null()),
           "whether the model hears of tools");
}

void session_play::encoded(const operation& op) {
  encoded_prompt answer{std::move(*to_encode_), request_.begun_reasoning ? "hi <think>\n" : "hi",
                        request_.prompt};
  const bool fails = op.a % 90 == 89;
  if (fails) answer.ids = failure{errc::template_failed, "it is unwell"};
  core_->encoded(std::move(answer));
  if (fails)
    return expect_error(errc::template_failed,
                        request_.asked.prompt.index() == 2 ? "messages" : "prompt");
  expect_prepared();
}

void session_play::compiled(const operation& op) {
  using why = models::grammar::errc;
  constexpr std::pair<why, errc> failures[] = {
      {why::no_resources, errc::not_ready},        {why::overdue, errc::queue_timed_out},
      {why::helper_failed, errc::executor_failed}, {why::timed_out, errc::grammar_refused},
      {why::out_of_memory, errc::grammar_refused}, {why::too_large, errc::grammar_refused}};
  const auto& failing = failures[op.b % std::size(failures)];
  const bool fails = op.a % 6 == 5;
  const models::grammar::result<models::grammar::compiled_grammar_ptr> grammar =
      fails ? models::grammar::result<models::grammar::compiled_grammar_ptr>(
                  failure{failing.first, "it is difficult"})
            : models::grammar::compiled_grammar_ptr();
  core_->grammar({grammar, nullptr});
  if (now_.silenced) return expect_end("cancelled", false);
  if (fails) return expect_error(failing.second, now_.plan.grammar_field);
  expect_submit();
}

void session_play::scored(const operation& op) {
  auto scores = std::make_shared<std::vector<prompt_score>>();
  event e = first_event();
  for (std::size_t i = 0; i < now_.prompt.size(); ++i) {
    if (i > 0) scores->push_back({logprob_of(op.a + 3 * i), some_top(op.b + 7 * i)});
    e.prompt_scores.push_back(
        i == 0 ? named_piece(now_.prompt[i], std::numeric_limits<float>::quiet_NaN(), {})
               : named_piece(now_.prompt[i], scores->back().logprob, scores->back().top));
  }
  core_->scored({scores});
  now_.at = stage::drawing;
  if (std::exchange(now_.announced, true)) return;
  if (prompt_only()) return expect_answer_to_prompt(std::move(e));
  expect_event(std::move(e));
  if (now_.silenced) expect_end("cancelled", now_.in_batcher);
}

void session_play::draw(const operation& op) {
  token_ready drawn;
  const std::size_t choice = op.a % n_choices();
  drawn.choice = static_cast<std::int32_t>(choice);
  digits b(op.b);
  const auto how = b.below(8);
  constexpr std::array whole_call{piece_vocabulary::call, std::int32_t{18}, std::int32_t{19},
                                  std::int32_t{21}, std::int32_t{24}};
  if (request_.asked.parse_output && how >= (call_at_[choice] % whole_call.size() > 0 ? 1U : 6U))
    drawn.token = whole_call[call_at_[choice]++ % whole_call.size()];
  else
    drawn.token = static_cast<std::int32_t>(
        b.below(how < 5 ? piece_vocabulary::n_letters : piece_vocabulary::n_pieces + 2));
  drawn.logprob = logprob_of(op.c);
  drawn.top = some_top(op.c);
  drawn.scheduled = scheduled_at;
  drawn.cached_tokens = request_.cached_tokens;
  const auto stop_ids = rules().stop_ids;
  drawn.stopped = std::find(stop_ids.begin(), stop_ids.end(), drawn.token) != stop_ids.end();
  const auto n = now_.ids[choice].size() + 1;
  drawn.length = !drawn.stopped && n >= static_cast<std::size_t>(now_.max_new);
  core_->token(drawn, now());
  // A step that was prepared before a stop string was found has drawn too much.
  if (!now_.finished[choice]) expect_token(drawn);
}

void session_play::disturb(const operation& op) {
  const request_error why{errc::interrupted, "the daemon ends", ""};
  switch (op.kind % 160) {
  case 128:
    core_->cancel();
    return expect_end("cancelled", now_.in_batcher);
  case 129:
    control_->silenced = true;
    now_.silenced = true;
    return;
  case 130:
    core_->end_with(why);
    return expect_error(errc::interrupted);
  case 131:
    core_->end_with({errc::queue_full, "full", ""});
    return expect_error(errc::queue_full);
  case 132:
    core_->expire();
    return expect_error(errc::timed_out);
  case 133:
    if (!now_.in_batcher) return;
    core_->failed({errc::executor_failed, "the step failed", ""});
    now_.in_batcher = false;
    return expect_error(errc::executor_failed);
  case 134:
  case 135:
  case 136:
    core_->batcher_lost({errc::executor_failed, "lost", ""});
    if (!now_.in_batcher) return;
    if (now_.drew || std::exchange(now_.moved, true)) return expect_error(errc::executor_failed);
    now_.n_submitted += 1;
    now_.at = stage::submitted;
    return;
  case 137:
    core_->compiler_lost({errc::executor_failed, "lost", ""});
    if (now_.at == stage::compiling) expect_error(errc::executor_failed);
    return;
  case 138:
  case 139:
    core_->grammar_overdue();
    if (now_.at != stage::compiling) return;
    if (now_.silenced) return expect_end("cancelled", false);
    return expect_error(errc::queue_timed_out, now_.plan.grammar_field);
  case 140:
    core_->waited_too_long();
    if (now_.in_batcher)
      now_.n_waited += 1;
    else
      expect_error(errc::queue_timed_out);
    return;
  case 141:
    next_event_ = listening::leaves;
    return;
  case 142:
    next_event_ = listening::throws;
    return;
  case 143:
  case 144: // up to 150 tokens
    for (std::uint32_t i = 0; i < 150 && now_.at == stage::drawing && !now_.over; ++i)
      draw({0, op.a + i, 8 * (op.b / 8 + i), op.c + i});
    return;
  default:
    // A repeated notice changes nothing.
    if (now_.in_batcher && now_.announced) core_->queued();
    return;
  }
}

/// Passes a message that was under way when the request ended.
void session_play::stray(const operation& op) {
  token_ready drawn;
  switch (op.kind % 10) {
  case 0:
    return core_->token(drawn, now());
  case 1:
    return core_->queued();
  case 2:
    return core_->failed({errc::executor_failed, "late", ""});
  case 3:
    return core_->cancel();
  case 4:
    return core_->batcher_lost({errc::executor_failed, "late", ""});
  case 5:
    return core_->grammar_overdue();
  case 6:
    return core_->expire();
  case 7:
    return core_->waited_too_long();
  case 8:
    core_->compiler_lost({errc::executor_failed, "late", ""});
    return core_->grammar({failure{models::grammar::errc::overdue, "late"}, nullptr});
  default:
    return core_->encoded({text_prompt{}, "", std::vector<std::int32_t>{1}});
  }
}

} // namespace session_tests
