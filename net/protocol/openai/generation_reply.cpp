#include "net/protocol/openai/generation_reply.hpp"

#include "net/error_map.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

void read_reply_options(fields& from, reply_options& to) {
  from.read("stream", to.stream);
  from.read("return_token_ids", to.token_ids);
  from.read("return_tokens_as_token_ids", to.tokens_as_ids);
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
    : options_(std::move(options)), tallies_(n_requests), prompt_ids_(n_requests) {
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
  if (ev.tokens.empty() && ev.text.empty() && !ev.finish.has_value()) return;

  auto& state = choices_[request * static_cast<std::size_t>(options_.choices_per_request) +
                         static_cast<std::size_t>(ev.choice)];
  if (!options_.stream) {
    state.text += ev.text;
    if (options_.logprobs || options_.token_ids)
      for (auto& token : ev.tokens)
        state.tokens.push_back(std::move(token));
    if (ev.finish.has_value()) state.finish = ev.finish;
    state.stop_string = std::move(ev.stop_string);
    state.stop_token = ev.stop_token;
    return;
  }
  // A token that has not completed a character yet is worth a chunk only to those who want ids.
  const bool silent =
      ev.text.empty() && !ev.finish.has_value() && !options_.logprobs && !options_.token_ids;
  if (silent && state.begun) return;
  choice part;
  part.index = state.index;
  part.request = request;
  part.text = std::move(ev.text);
  part.tokens = std::move(ev.tokens);
  part.finish = ev.finish;
  part.stop_string = std::move(ev.stop_string);
  part.stop_token = ev.stop_token;
  write_chunk(state, part, out);
}

void generation_reply::open(json_writer& json, std::string_view object) const {
  json.begin_object().field("id", options_.identity.id).field("object", object).raw(head_);
}

void generation_reply::write_chunk(choice& state, const choice& part, std::string& out) {
  out += "data: ";
  json_writer json(out);
  open(json, stream_object());
  json.key("choices").begin_array().begin_object().field("index", state.index);
  add_choice(json, state, part, false);
  json.end_object().end_array();
  if (options_.continuous_usage) {
    json.key("usage");
    add_usage(json, sum(tallies_));
  }
  add_extras(json, first_chunk_);
  json.end_object();
  out += "\n\n";
  state.begun = true;
  first_chunk_ = false;
}

void generation_reply::on_end(std::string& out) {
  if (options_.stream && !options_.include_usage) {
    out += "data: [DONE]\n\n";
    return;
  }
  if (options_.stream) out += "data: ";
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
  if (options_.stream) out += "\n\ndata: [DONE]\n\n";
}

void generation_reply::on_error(const api_error& error, std::string& out) {
  out += "data: ";
  out += error_body(error);
  out += "\n\ndata: [DONE]\n\n";
}

void generation_reply::add_finish(json_writer& json, const choice& part) const {
  if (part.finish.has_value())
    json.field("finish_reason", finish_name(*part.finish));
  else
    json.field("finish_reason", nullptr);
  add_stop_reason(json, part.stop_string, part.stop_token, options_.stop_token_ids);
}

} // namespace twill::net
