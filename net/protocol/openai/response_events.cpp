#include "net/protocol/openai/response_events.hpp"

#include "net/error_map.hpp"
#include "net/random_id.hpp"

namespace twill::net {

response_events::response_events(response_echo echo, sink to, std::string stream_id)
    : echo_(std::move(echo)), sink_(std::move(to)), stream_id_(std::move(stream_id)),
      item_id_(make_id("msg_")) {}

void response_events::on_event(actors::event&& ev) {
  tally_.add(ev);
  begin();
  if (ev.tokens.empty() && ev.text.empty() && !ev.finish.has_value()) return;
  open_item();
  text_ += ev.text;
  if (sink_ && (!ev.text.empty() || (echo_.logprobs && !ev.tokens.empty())))
    emit("response.output_text.delta", [&](json_writer& json) {
      add_place(json);
      json.field("delta", ev.text).key("logprobs");
      if (echo_.logprobs)
        add_chat_logprobs(json, ev.tokens, false);
      else
        json.raw("[]");
    });
  if (echo_.logprobs)
    for (auto& token : ev.tokens)
      logprobs_.push_back(std::move(token));
  if (!ev.finish.has_value()) return;
  const bool whole = *ev.finish != actors::finish_reason::length;
  status_ = whole ? "completed" : "incomplete";
  if (!whole) incomplete_reason_ = "max_output_tokens";
  close_item();
  emit_response(whole ? "response.completed" : "response.incomplete");
}

void response_events::complete_empty() {
  begin();
  status_ = "completed";
  emit_response("response.completed");
}

bool response_events::fail(const api_error& error) {
  if (!begun_) return false;
  status_ = "failed";
  const int http_status = map_error(error).http_status;
  const char* code = http_status == 429  ? "rate_limit_exceeded"
                     : http_status < 500 ? "invalid_prompt"
                                         : "server_error";
  error_json_.clear();
  json_writer(error_json_)
      .begin_object()
      .field("code", code)
      .field("message", error.message)
      .end_object();
  emit_response("response.failed");
  return true;
}

void response_events::cancel() {
  begin();
  status_ = "cancelled";
  incomplete_reason_ = "cancelled";
  close_item();
  emit_response("response.incomplete");
}

std::string response_events::object() const {
  std::string out;
  json_writer json(out);
  add_response(json);
  return out;
}

void response_events::begin() {
  if (begun_) return;
  begun_ = true;
  emit_response("response.created");
  emit_response("response.in_progress");
}

void response_events::open_item() {
  if (item_made_) return;
  item_made_ = item_open_ = true;
  emit("response.output_item.added", [&](json_writer& json) {
    json.field("output_index", 0).key("item");
    add_item(json, "in_progress", false);
  });
  emit("response.content_part.added", [&](json_writer& json) {
    add_place(json);
    json.key("part");
    add_part(json, false);
  });
}

void response_events::close_item() {
  if (!item_open_) return;
  item_open_ = false;
  emit("response.output_text.done", [&](json_writer& json) {
    add_place(json);
    json.field("text", text_).key("logprobs");
    add_chat_logprobs(json, logprobs_, false);
  });
  emit("response.content_part.done", [&](json_writer& json) {
    add_place(json);
    json.key("part");
    add_part(json, true);
  });
  emit("response.output_item.done", [&](json_writer& json) {
    json.field("output_index", 0).key("item");
    add_item(json, status_ == "completed" ? "completed" : "incomplete", true);
  });
}

void response_events::emit_response(std::string_view type) {
  emit(type, [&](json_writer& json) {
    json.key("response");
    add_response(json);
  });
}

void response_events::emit(std::string_view type,
                           const std::function<void(json_writer&)>& members) {
  if (!sink_) return;
  std::string out;
  json_writer json(out);
  json.begin_object().field("type", type).field("sequence_number", sequence_++);
  if (!stream_id_.empty()) json.field("stream_id", stream_id_);
  members(json);
  json.end_object();
  sink_(type, std::move(out));
}

void response_events::add_place(json_writer& json) const {
  json.field("item_id", item_id_).field("output_index", 0).field("content_index", 0);
}

void response_events::add_part(json_writer& json, bool filled) const {
  json.begin_object().field("type", "output_text").key("annotations").raw("[]").key("logprobs");
  if (filled)
    add_chat_logprobs(json, logprobs_, false);
  else
    json.raw("[]");
  json.field("text", filled ? std::string_view(text_) : std::string_view()).end_object();
}

void response_events::add_item(json_writer& json, std::string_view status,
                               bool with_content) const {
  json.begin_object()
      .field("id", item_id_)
      .field("type", "message")
      .field("status", status)
      .field("role", "assistant")
      .key("content")
      .begin_array();
  if (with_content) add_part(json, true);
  json.end_array().end_object();
}

namespace {

void text_or_null(json_writer& json, std::string_view name, const std::string& text) {
  json.key(name);
  if (text.empty())
    json.add(nullptr);
  else
    json.add(text);
}

} // namespace

void response_events::add_settings(json_writer& json) const {
  text_or_null(json, "instructions", echo_.instructions);
  json.key("max_output_tokens");
  if (echo_.max_output_tokens > 0)
    json.add(echo_.max_output_tokens);
  else
    json.add(nullptr);
  json.field("model", echo_.identity.model).field("parallel_tool_calls", echo_.parallel_tool_calls);
  text_or_null(json, "previous_response_id", echo_.previous_response_id);
  json.field("reasoning", echo_.reasoning)
      .field("store", echo_.store)
      .field("temperature", echo_.temperature)
      .key("text")
      .raw(R"({"format":{"type":"text"}})")
      .field("tool_choice", echo_.tool_choice)
      .field("tools", echo_.tools)
      .field("top_logprobs", echo_.top_logprobs)
      .field("top_p", echo_.top_p)
      .field("truncation", "disabled")
      .field("metadata", echo_.metadata);
  text_or_null(json, "user", echo_.user);
}

void response_events::add_response(json_writer& json) const {
  json.begin_object()
      .field("id", echo_.identity.id)
      .field("object", "response")
      .field("created_at", echo_.identity.created_unix_s)
      .field("status", status_)
      .field("background", false);
  json.key("error").raw(error_json_.empty() ? "null" : error_json_);
  json.key("incomplete_details");
  if (incomplete_reason_.empty())
    json.add(nullptr);
  else
    json.begin_object().field("reason", incomplete_reason_).end_object();
  const bool running = status_ == "in_progress";
  json.key("output").begin_array();
  if (!running && item_made_)
    add_item(json, status_ == "completed" ? "completed" : "incomplete", true);
  json.end_array();
  add_settings(json);
  json.key("usage");
  if (running) {
    json.add(nullptr);
  } else {
    const auto& use = tally_.total();
    json.begin_object().field("input_tokens", use.prompt_tokens);
    json.key("input_tokens_details")
        .begin_object()
        .field("cached_tokens", use.cached_tokens)
        .field("cache_write_tokens", 0)
        .end_object();
    json.field("output_tokens", use.completion_tokens);
    json.key("output_tokens_details").begin_object().field("reasoning_tokens", 0).end_object();
    json.field("total_tokens", use.prompt_tokens + use.completion_tokens).end_object();
  }
  json.end_object();
}

} // namespace twill::net
