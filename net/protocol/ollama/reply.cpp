#include "net/protocol/ollama/reply.hpp"

#include <iterator>
#include <utility>

#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/ollama/errors.hpp"
#include "net/random_id.hpp"

namespace twill::net {

ollama_reply::ollama_reply(ollama_reply_options options)
    : options_(std::move(options)), asked_(options_.now().steady), last_(asked_) {}

void ollama_reply::on_event(std::size_t, actors::event&& ev, std::string& out) {
  tally_.add(ev);
  last_ = options_.now().steady;
  if (!begun_) begun_ = last_;
  if (!drawn_ && !ev.tokens.empty()) drawn_ = last_;
  if (ev.finish.has_value()) finish_ = ev.finish;
  if (options_.context) {
    ids_.insert(ids_.end(), ev.prompt_ids.begin(), ev.prompt_ids.end());
    for (const auto& token : ev.tokens)
      ids_.push_back(token.chosen.id);
  }
  if (!options_.settled_as.empty()) return;
  if (!options_.stream) return take(ev, whole_);
  part said;
  take(ev, said);
  if (said.says_something()) write_part(said, out);
}

void ollama_reply::take(actors::event& ev, part& to) {
  using kind = actors::output_part_kind;
  to.text += ev.text; // text of an output that the engine does not parse into parts
  for (auto& piece : ev.parts) {
    switch (piece.kind) {
    case kind::text:
      to.text += piece.text;
      break;
    case kind::reasoning:
      to.thinking += piece.text;
      break;
    case kind::call_begin:
      end_call(false, to);
      open_ = {piece.call,
               piece.call_id.empty()
                   ? part_id("call_", options_.id, static_cast<std::size_t>(piece.call))
                   : std::move(piece.call_id),
               std::move(piece.text),
               {}};
      break;
    case kind::call_arguments:
      if (open_) open_->arguments += piece.text;
      break;
    case kind::call_end:
      end_call(piece.complete, to);
      break;
    }
  }
  if (options_.logprobs)
    to.tokens.insert(to.tokens.end(), std::make_move_iterator(ev.tokens.begin()),
                     std::make_move_iterator(ev.tokens.end()));
}

/// Ends the tool call whose arguments the model has been writing. Clients expect the arguments to
/// be an object. If the arguments are not an object, because the output was cut or the model made a
/// mistake, the call is written as text of the answer.
void ollama_reply::end_call(bool complete, part& to) {
  if (!open_) return;
  auto ended = *std::exchange(open_, std::nullopt);
  if (complete) {
    auto arguments = parse_json(ended.arguments.empty() ? "{}" : ended.arguments);
    if (arguments.ok() && arguments.value().as_object() != nullptr) {
      // Format the JSON anew, because the model may have put newlines between members, and a reply
      // must be a single line.
      ended.arguments = json_text(arguments.value());
      return to.calls.push_back(std::move(ended));
    }
  }
  to.text += R"({"name": )";
  append_json_string(to.text, ended.name);
  to.text += R"(, "arguments": )" + ended.arguments;
}

void ollama_reply::open(json_writer& json) const {
  json.begin_object()
      .field("model", options_.model)
      .field("created_at", rfc3339(options_.now().wall));
}

void ollama_reply::add_answer(json_writer& json, const part& said) const {
  if (options_.chat)
    json.key("message").begin_object().field("role", "assistant").field("content", said.text);
  else
    json.field("response", said.text);
  if (!said.thinking.empty()) json.field("thinking", said.thinking);
  if (!said.calls.empty()) add_calls(json, said.calls);
  if (options_.chat) json.end_object();
}

void ollama_reply::add_calls(json_writer& json, const std::vector<made_call>& calls) const {
  json.key("tool_calls").begin_array();
  for (const auto& call : calls) {
    json.begin_object().field("id", call.id).key("function").begin_object();
    json.field("index", call.index).field("name", call.name).key("arguments").raw(call.arguments);
    json.end_object().end_object();
  }
  json.end_array();
}

void ollama_reply::write_part(const part& said, std::string& out) const {
  json_writer json(out);
  open(json);
  add_answer(json, said);
  json.field("done", false);
  if (!said.tokens.empty()) {
    json.key("logprobs");
    add_chat_logprobs(json, said.tokens, false);
  }
  json.end_object();
  out += '\n';
}

void ollama_reply::on_end(std::string& out) {
  part left = std::exchange(whole_, {});
  end_call(false, left);
  if (options_.stream && left.says_something()) {
    write_part(left, out);
    left = {};
  }
  json_writer json(out);
  open(json);
  add_answer(json, left);
  json.field("done", true);
  if (!options_.settled_as.empty()) {
    json.field("done_reason", options_.settled_as);
  } else {
    const bool cut = finish_ == actors::finish_reason::length;
    json.field("done_reason", cut ? "length" : "stop");
    if (options_.context) {
      json.key("context");
      add_ids(json, std::span<const std::int32_t>(ids_));
    }
    if (!left.tokens.empty()) {
      json.key("logprobs");
      add_chat_logprobs(json, left.tokens, false);
    }
  }
  add_durations(json);
  json.end_object();
  if (options_.stream) out += '\n';
}

/// Writes durations in nanoseconds, computed from the times of events. `load_duration` is the time
/// until the request was queued. In that time the prompt is built from the template and tokenized,
/// and a model that slept is loaded. `prompt_eval_duration` is the time from then to the first
/// token, including the time in the queue. `eval_duration` is the time from the first token to the
/// end.
void ollama_reply::add_durations(json_writer& json) const {
  const auto ns = [](steady from, steady to) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
  };
  const auto begun = begun_.value_or(last_);
  json.field("total_duration", ns(asked_, last_)).field("load_duration", ns(asked_, begun));
  if (!options_.settled_as.empty()) return;
  const auto drawn = drawn_.value_or(last_);
  json.field("prompt_eval_count", tally_.total().prompt_tokens)
      .field("prompt_eval_duration", ns(begun, drawn))
      .field("eval_count", tally_.total().completion_tokens)
      .field("eval_duration", ns(drawn, last_));
}

void ollama_reply::on_error(const api_error& error, std::string& out) {
  out += ollama_error_body(error);
  out += '\n';
}

} // namespace twill::net
