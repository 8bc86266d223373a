#include "net/protocol/openai/generation_reply.hpp"

#include <array>

#include "net/error_map.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/openai/event_id.hpp"
#include "net/random_id.hpp"

namespace twill::net {

namespace {

using options_of = fields_of<reply_options>;

constexpr std::array options_table = {
    options_of::member<&reply_options::stream>("stream", "The answer comes as server-sent events."),
    options_of::member<&reply_options::store>(
        "store", "The answer is kept, and can be read again under its id."),
    options_of::member<&reply_options::token_ids>("return_token_ids",
                                                  "The ids of prompt and output come as well."),
    options_of::member<&reply_options::tokens_as_ids>(
        "return_tokens_as_token_ids",
        "With log-probabilities: tokens are named by id, not by text.")};
constexpr field_row stream_options_row{
    "stream_options",
    R"("type":"object","properties":{"include_usage":{"type":"boolean"},)"
    R"("continuous_usage_stats":{"type":"boolean"}})",
    "With `stream`: whether a last event has the usage, or each one has."};

} // namespace

void add_reply_option_rows(field_rows& to) {
  add_rows(to, options_table);
  to.push_back(stream_options_row);
}

void read_reply_options(fields& from, reply_options& to) {
  read_fields(from, options_table, to);
  const auto* stream_options = from.object("stream_options");
  if (stream_options == nullptr || !from.ok()) return;
  if (!to.stream)
    return from.reject("stream_options", "absent unless `stream` is true", *stream_options);
  fields nested(*stream_options, "stream_options.");
  nested.read("include_usage", to.include_usage);
  nested.read("continuous_usage_stats", to.continuous_usage);
  if (!nested.ok()) from.reject(nested.error());
}

generation_reply::generation_reply(reply_options options, std::size_t n_requests)
    : options_(std::move(options)), tallies_(n_requests), prompt_ids_(n_requests),
      prompt_scores_(n_requests) {
  choices_.resize(n_requests * static_cast<std::size_t>(options_.choices_per_request));
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].index = static_cast<std::int32_t>(i);
    choices_[i].request = i / static_cast<std::size_t>(options_.choices_per_request);
  }
  json_writer json(head_);
  json.field("created", options_.identity.created_unix_s).field("model", options_.identity.model);
}

void generation_reply::on_event(std::size_t request, actors::event&& ev, std::string& out) {
  tallies_[request].add(ev);
  if (!ev.prompt_ids.empty()) prompt_ids_[request] = std::move(ev.prompt_ids);
  if (!ev.prompt_scores.empty()) prompt_scores_[request] = std::move(ev.prompt_scores);
  const bool silent_event = ev.tokens.empty() && ev.text.empty() && ev.parts.empty();
  if (silent_event && !ev.finish.has_value()) return;
  // Such a choice is possible only if the stored file was written by other software.
  if (ev.choice >= options_.choices_per_request) return;

  auto& state = choices_[request * static_cast<std::size_t>(options_.choices_per_request) +
                         static_cast<std::size_t>(ev.choice)];
  if (!options_.stream) {
    take_parts(ev, state, state.index);
    if (options_.logprobs || options_.token_ids)
      for (auto& token : ev.tokens)
        state.tokens.push_back(std::move(token));
    if (ev.finish.has_value()) state.finish = ev.finish;
    state.stop_string = std::move(ev.stop_string);
    state.stop_token = ev.stop_token;
    return;
  }
  choice part;
  take_parts(ev, part, state.index);
  // A token that does not complete a character is written only if the client asked for token ids or
  // log-probabilities.
  const bool silent = part.text.empty() && part.reasoning.empty() && part.calls.empty() &&
                      !ev.finish.has_value() && !options_.logprobs && !options_.token_ids;
  if (silent && state.begun) return;
  part.index = state.index;
  part.request = request;
  part.tokens = std::move(ev.tokens);
  part.finish = ev.finish;
  part.stop_string = std::move(ev.stop_string);
  part.stop_token = ev.stop_token;
  write_chunk(state, part, out);
}

void generation_reply::take_parts(actors::event& ev, choice& to, std::int32_t choice_index) const {
  using kind = actors::output_part_kind;
  to.text += ev.text; // text from an engine that does not parse the output into parts
  for (auto& part : ev.parts) {
    if (part.call > 0 && !options_.parallel_calls) continue;
    switch (part.kind) {
    case kind::text:
      to.text += part.text;
      break;
    case kind::reasoning:
      to.reasoning += part.text;
      break;
    case kind::call_begin:
      to.calls.push_back(
          {part.call,
           true,
           part.call_id.empty() ? call_id(choice_index, part.call) : std::move(part.call_id),
           std::move(part.text),
           {}});
      break;
    case kind::call_arguments:
      if (to.calls.empty() || to.calls.back().index != part.call)
        to.calls.push_back({part.call, false, {}, {}, {}});
      to.calls.back().arguments += part.text;
      break;
    case kind::call_end:
      break;
    }
  }
}

/// Returns an id that is unique for each tool call of each choice, and is the same whenever the
/// reply is rebuilt from storage.
std::string generation_reply::call_id(std::int32_t choice, std::int32_t call) const {
  constexpr std::size_t most_calls = std::size_t{1} << 32;
  return part_id("call_", options_.identity.id,
                 static_cast<std::size_t>(choice) * most_calls + static_cast<std::size_t>(call));
}

std::size_t generation_reply::begin_event(std::string& out) const {
  const auto begin = out.size();
  if (options_.store) {
    out += "id: ";
    out += event_id(options_.identity.id, next_number_);
    out += '\n';
  }
  out += "data: ";
  return begin;
}

void generation_reply::end_event(std::size_t begin, std::string& out) {
  out += "\n\n";
  if (next_number_++ <= options_.after) out.resize(begin);
}

void generation_reply::open(json_writer& json, std::string_view object) const {
  json.begin_object().field("id", options_.identity.id).field("object", object).raw(head_);
}

void generation_reply::write_chunk(choice& state, const choice& part, std::string& out) {
  const auto begin = begin_event(out);
  json_writer json(out);
  open(json, stream_object());
  json.key("choices").begin_array().begin_object().field("index", state.index);
  add_choice(json, state, part, false);
  json.end_object().end_array();
  if (options_.continuous_usage) {
    json.key("usage");
    add_usage(json, sum(tallies_));
  } else if (options_.include_usage) {
    json.field("usage", nullptr); // only the last chunk has usage
  }
  add_extras(json, first_chunk_);
  json.end_object();
  end_event(begin, out);
  state.begun = true;
  first_chunk_ = false;
}

void generation_reply::on_end(std::string& out) {
  if (options_.stream && !options_.include_usage) {
    out += "data: [DONE]\n\n";
    return;
  }
  const auto begin = options_.stream ? begin_event(out) : 0;
  json_writer json(out);
  open(json, options_.stream ? stream_object() : whole_object());
  json.key("choices").begin_array();
  if (!options_.stream)
    for (auto& state : choices_) {
      json.begin_object().field("index", state.index);
      add_choice(json, state, state, true);
      json.end_object();
    }
  json.end_array().key("usage");
  add_usage(json, sum(tallies_));
  if (!options_.stream) add_extras(json, true);
  json.end_object();
  if (!options_.stream) return;
  end_event(begin, out);
  out += "data: [DONE]\n\n";
}

void generation_reply::on_error(const api_error& error, std::string& out) {
  out += "data: ";
  out += error_body(error);
  out += "\n\ndata: [DONE]\n\n";
}

void generation_reply::add_finish(json_writer& json, const choice& part) const {
  if (part.finish.has_value())
    json.field("finish_reason",
               options_.legacy_calls && part.finish == actors::finish_reason::tool_calls
                   ? std::string_view("function_call")
                   : finish_name(*part.finish));
  else
    json.field("finish_reason", nullptr);
  add_stop_reason(json, part.stop_string, part.stop_token, options_.stop_token_ids);
}

void generation_reply::add_prompt_logprobs(json_writer& json, std::size_t request) const {
  json.begin_array();
  const auto scores = prompt_scores(request);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (i == 0) {
      json.add(nullptr);
      continue;
    }
    const auto& chosen = scores[i].chosen;
    const auto add = [&](const actors::token_logprob& token, std::size_t rank) {
      json.key(std::to_string(token.id)).begin_object();
      json.field("logprob", shown_logprob(token.logprob)).key("rank");
      if (rank > 0)
        json.add(rank);
      else
        json.add(nullptr); // the token is not among the alternatives, so its rank is unknown
      json.field("decoded_token", token_text(token, options_.tokens_as_ids)).end_object();
    };
    json.begin_object();
    bool seen = false;
    for (std::size_t rank = 0; rank < scores[i].top.size(); ++rank) {
      add(scores[i].top[rank], rank + 1);
      seen = seen || scores[i].top[rank].id == chosen.id;
    }
    if (!seen) add(chosen, 0);
    json.end_object();
  }
  json.end_array();
}

} // namespace twill::net
