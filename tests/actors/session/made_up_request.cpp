#include "tests/actors/session/made_up_request.hpp"

#include <array>
#include <chrono>

#include "actors/structured/grammar_service.hpp"
#include "models/text/tool_calls/tool_format.hpp"
#include "tests/actors/session/piece_vocabulary.hpp"

namespace session_tests {

using namespace twill;
using namespace twill::actors;

namespace {

constexpr std::array stops{"ab",
                           "ba",
                           "aba",
                           "b",
                           "aab",
                           "abb",
                           "\xC3\xA4",
                           "a\xC3\xA4",
                           "\xEF\xBF\xBD",
                           "\xE2\x82\xAC"
                           "b",
                           " a",
                           "<mark>",
                           "</s>",
                           "aa a",
                           "}"};

/// A model of pieces without weights, which no test here needs. A few ids have no text.
std::shared_ptr<served_model> served_pieces() {
  auto files = std::make_shared<models::model>();
  files->text = std::make_shared<piece_vocabulary>();
  files->spec.vocab_size = piece_vocabulary::n_pieces + 2;
  auto model = std::make_shared<served_model>();
  model->files = files;
  model->id = "pieces";
  model->continuity = 77;
  model->grammars = std::make_shared<grammar_service>(files, models::grammar::compile_limits{});
  return model;
}

void choose_text(const test::operation& from, request& asked) {
  digits kind(from.kind), a(from.a), b(from.b);
  config::sampling_params& params = asked.sampling;
  params.n = kind.one_in(3) ? 2 + static_cast<std::int32_t>(kind.below(2)) : 1;
  params.include_stop_str_in_output = kind.one_in(2);
  params.skip_special_tokens = !kind.one_in(3);
  params.ignore_eos = kind.one_in(4);
  asked.parse_output = kind.one_in(3);
  if (kind.one_in(2)) {
    chat_prompt chat;
    if (kind.one_in(2))
      chat.tools = value_list{value_object{
          {"type", "function"},
          {"function",
           value_object{{"name", "look"}, {"parameters", value_object{{"type", "object"}}}}}}};
    asked.prompt = chat;
    asked.tools.kind = kind.one_in(6)   ? tool_choice_kind::required
                       : kind.one_in(6) ? tool_choice_kind::none
                                        : tool_choice_kind::automatic;
  } else {
    asked.prompt = text_prompt{"a prompt"};
  }
  for (std::uint32_t left = a.below(4); left > 0; --left)
    params.stop.emplace_back(stops[a.below(stops.size())]);
  for (std::uint32_t left = b.below(3); left > 0; --left)
    params.stop_token_ids.push_back(static_cast<std::int32_t>(b.below(piece_vocabulary::n_pieces)));
}

void choose_limits(const test::operation& from, made_up_request& out) {
  digits kind(from.kind), a(from.a);
  config::sampling_params& params = out.asked.sampling;
  // Short outputs end for many reasons; long ones end by a stop string in most cases.
  const auto n = static_cast<std::int32_t>(kind.below(2) == 0 ? 40 : kind.below(8));
  params.max_tokens = kind.one_in(5) ? -1 : n;
  params.min_tokens = static_cast<std::int32_t>(kind.one_in(2) ? kind.below(6) : 0);
  if (params.max_tokens >= 0) params.min_tokens = std::min(params.min_tokens, params.max_tokens);
  params.logprobs = kind.one_in(2) ? 2 : -1;
  params.seed = 5;
  out.prompt.resize(a.one_in(80) ? 0 : 1 + a.below(5));
  for (std::size_t i = 0; i < out.prompt.size(); ++i)
    out.prompt[i] = static_cast<std::int32_t>((from.b + 7 * i) % piece_vocabulary::n_letters);
  if (a.one_in(4)) out.asked.truncate_prompt_tokens = 1 + static_cast<std::int32_t>(a.below(4));
  if (a.one_in(4)) out.asked.prompt_logprobs = static_cast<std::int32_t>(a.below(3));
  out.asked.echo_prompt_ids = a.one_in(2);
  const bool tight = params.max_tokens < 0 || a.one_in(6);
  digits c(from.c);
  out.model->max_context_tokens = static_cast<std::int32_t>(tight ? 2 + c.below(16) : 60);
  out.model->kv_tokens = static_cast<std::int64_t>(tight ? 1 + c.below(16) : 60);
  // Room for more tokens than are expected of a request without max_tokens that nothing ends.
  if (params.max_tokens < 0 && c.one_in(3)) {
    out.model->kv_tokens = out.model->max_context_tokens = 400;
    params.stop.clear();
    params.stop_token_ids.clear();
    params.ignore_eos = true;
    out.asked.parse_output = false; // the parser is run anew for each token, which takes too long
  }
  if (c.one_in(3)) out.options.default_max_tokens = 1 + static_cast<std::int32_t>(c.below(9));
}

void choose_surroundings(const test::operation& from, made_up_request& out) {
  digits kind(from.kind), a(from.a);
  request& asked = out.asked;
  asked.tenant = "t";
  asked.client = "c";
  asked.client_id = "its id";
  asked.priority = 4;
  if (kind.one_in(8)) {
    asked.grammar.emplace();
    asked.grammar_field = "response_format";
  }
  const char* formats[] = {"hermes", "hermes", "mistral"};
  if (!kind.one_in(4))
    out.model->answers.calls = models::tool_calls::format_named(formats[kind.below(3)]);
  if (kind.one_in(2)) {
    out.model->answers.reasoning.emplace();
    out.model->answers.reasoning_begin_token = piece_vocabulary::think;
    out.model->answers.reasoning_markers = {piece_vocabulary::think, piece_vocabulary::end_think};
    out.begun_reasoning = kind.one_in(3);
  }
  if (kind.one_in(2)) out.model->answers.call_markers = {piece_vocabulary::call};
  if (kind.one_in(80)) asked.model = "another";
  out.has_budget = a.one_in(2);
  out.used_before = a.one_in(3) ? a.below(60) : 0;
  out.cached_tokens = static_cast<std::int32_t>(a.below(4));
}

} // namespace

made_up_request::made_up_request(const test::operation& text, const test::operation& limits,
                                 const test::operation& around)
    : model(served_pieces()) {
  choose_text(text, asked);
  choose_limits(limits, *this);
  choose_surroundings(around, *this);
}

} // namespace session_tests
