#include "net/protocol/openai/response_events.hpp"

#include <algorithm>

#include "net/error_map.hpp"
#include "net/protocol/chat_fields.hpp"

namespace twill::net {

response_events::response_events(response_echo echo, sink to, std::string stream_id)
    : echo_(std::move(echo)), sink_(std::move(to)), stream_id_(std::move(stream_id)) {}

void response_events::on_event(actors::event&& ev) {
  using kind = actors::output_part_kind;
  tally_.add(ev);
  begin();
  tokens with = std::move(waiting_tokens_);
  waiting_tokens_.clear();
  if (echo_.logprobs)
    for (auto& token : ev.tokens)
      with.push_back(std::move(token));
  const bool only_reasoning =
      !ev.parts.empty() && std::all_of(ev.parts.begin(), ev.parts.end(), [](const auto& part) {
        return part.kind == kind::reasoning;
      });
  if (only_reasoning) reasoning_tokens_ += static_cast<std::int32_t>(ev.tokens.size());
  for (const auto& part : ev.parts)
    on_part(part, with);
  // If the engine does not parse the output into parts, the text is in `ev.text`.
  if (!ev.text.empty()) add_text(response_item_kind::message, ev.text, with);
  const bool in_message = item_open_ && items_.back().kind == response_item_kind::message;
  if (!with.empty() && in_message)
    add_text(response_item_kind::message, {}, with);
  else if (!item_open_)
    waiting_tokens_ = std::move(with);
  if (!ev.finish.has_value()) return;
  const bool whole = *ev.finish != actors::finish_reason::length;
  status_ = whole ? "completed" : "incomplete";
  if (!whole) incomplete_reason_ = "max_output_tokens";
  if (items_.empty()) {
    with = std::move(waiting_tokens_);
    add_text(response_item_kind::message, {}, with);
  }
  close_item(whole);
  emit_response(whole ? "response.completed" : "response.incomplete");
}

void response_events::on_part(const actors::output_part& part, tokens& with) {
  using kind = actors::output_part_kind;
  if (part.call > 0 && !echo_.parallel_tool_calls) return; // the client wants at most one call
  switch (part.kind) {
  case kind::text:
    return add_text(response_item_kind::message, part.text, with);
  case kind::reasoning:
    return add_text(response_item_kind::reasoning, part.text, with);
  case kind::call_begin:
    with.clear(); // log-probabilities are kept only for messages
    return begin_call(part.text, part.call_id);
  case kind::call_arguments:
    return add_arguments(part.text);
  case kind::call_end:
    return close_item(part.complete);
  }
}

void response_events::add_text(response_item_kind what, std::string_view text, tokens& with) {
  if (!item_open_ || items_.back().kind != what) open_item(what);
  auto& item = items_.back();
  item.text += text;
  if (what == response_item_kind::reasoning) {
    with.clear();
    return emit_at("response.reasoning_text.delta", true,
                   [&](json_writer& json) { json.field("delta", text); });
  }
  if (!text.empty() || !with.empty())
    emit_at("response.output_text.delta", true, [&](json_writer& json) {
      json.field("delta", text).key("logprobs");
      add_chat_logprobs(json, with, false);
    });
  for (auto& token : with)
    item.logprobs.push_back(std::move(token));
  with.clear();
}

void response_events::begin_call(std::string_view name, const std::string& call_id) {
  open_item(response_item_kind::call, std::string(name), call_id);
}

void response_events::add_arguments(std::string_view text) {
  if (!item_open_ || items_.back().kind != response_item_kind::call) return;
  items_.back().text += text;
  emit_at("response.function_call_arguments.delta", false,
          [&](json_writer& json) { json.field("delta", text); });
}

void response_events::complete_empty() {
  begin();
  status_ = "completed";
  emit_response("response.completed");
}

void response_events::queue() {
  status_ = "queued";
  begun_ = true;
  emit_response("response.created");
  emit_response("response.queued");
}

bool response_events::fail(const api_error& error) {
  if (!begun_) return false;
  status_ = "failed";
  const auto wire = map_error(error);
  const std::string_view code = wire.http_status == 429        ? "rate_limit_exceeded"
                                : wire.http_status < 500       ? "invalid_prompt"
                                : wire.code == "model_changed" ? wire.code
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
  close_item(false);
  emit_response("response.incomplete");
}

std::string response_events::object() const {
  std::string out;
  json_writer json(out);
  add_response(json);
  return out;
}

void response_events::begin() {
  if (!begun_) {
    begun_ = true;
    emit_response("response.created");
  } else if (status_ != "queued") {
    return;
  }
  status_ = "in_progress";
  emit_response("response.in_progress");
}

response_item& response_events::open_item(response_item_kind what, std::string name,
                                          std::string call_id) {
  close_item(true);
  auto& item = items_.emplace_back(echo_.identity.id, items_.size(), what, std::move(name),
                                   std::move(call_id));
  item_open_ = true;
  emit_at("response.output_item.added", false, [&](json_writer& json) {
    json.key("item");
    item.add_to(json, false);
  });
  if (what != response_item_kind::call)
    emit_at("response.content_part.added", true, [&](json_writer& json) {
      json.key("part");
      item.add_part_to(json, false);
    });
  return item;
}

void response_events::close_item(bool complete) {
  if (!item_open_) return;
  auto& item = items_.back();
  item.complete = complete;
  if (item.kind == response_item_kind::call) {
    emit_at("response.function_call_arguments.done", false, [&](json_writer& json) {
      json.field("name", item.name).field("arguments", item.text);
    });
  } else {
    const bool is_message = item.kind == response_item_kind::message;
    emit_at(is_message ? "response.output_text.done" : "response.reasoning_text.done", true,
            [&](json_writer& json) {
              json.field("text", item.text);
              if (!is_message) return;
              json.key("logprobs");
              add_chat_logprobs(json, item.logprobs, false);
            });
    emit_at("response.content_part.done", true, [&](json_writer& json) {
      json.key("part");
      item.add_part_to(json, true);
    });
  }
  emit_at("response.output_item.done", false, [&](json_writer& json) {
    json.key("item");
    item.add_to(json, true);
  });
  item_open_ = false;
}

std::string response_events::text() const {
  std::string all;
  for (const auto& item : items_)
    if (item.kind == response_item_kind::message) all += item.text;
  return all;
}

value_list response_events::tool_calls() const {
  value_list calls;
  for (const auto& item : items_)
    if (item.kind == response_item_kind::call)
      calls.push_back(make_tool_call(item.call_id, item.name, value(item.text)));
  return calls;
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

void response_events::emit_at(std::string_view type, bool in_content,
                              const std::function<void(json_writer&)>& members) {
  const auto& item = items_.back();
  const bool names_item = !type.starts_with("response.output_item");
  emit(type, [&](json_writer& json) {
    if (names_item) json.field("item_id", item.id);
    json.field("output_index", items_.size() - 1);
    if (in_content) json.field("content_index", 0);
    members(json);
  });
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
      .field("text", echo_.text)
      .field("tool_choice", echo_.tool_choice)
      .field("tools", echo_.tools)
      .field("top_logprobs", echo_.top_logprobs)
      .field("top_p", echo_.top_p)
      .field("truncation", echo_.truncation)
      .field("metadata", echo_.metadata);
  text_or_null(json, "user", echo_.user);
}

void response_events::add_response(json_writer& json) const {
  json.begin_object()
      .field("id", echo_.identity.id)
      .field("object", "response")
      .field("created_at", echo_.identity.created_unix_s)
      .field("status", status_)
      .field("background", echo_.background);
  json.key("error").raw(error_json_.empty() ? "null" : error_json_);
  json.key("incomplete_details");
  if (incomplete_reason_.empty())
    json.add(nullptr);
  else
    json.begin_object().field("reason", incomplete_reason_).end_object();
  const bool running = status_ == "in_progress" || status_ == "queued";
  json.key("output").begin_array();
  if (!running)
    for (const auto& item : items_)
      item.add_to(json, true);
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
    json.key("output_tokens_details")
        .begin_object()
        .field("reasoning_tokens", reasoning_tokens_)
        .end_object();
    json.field("total_tokens", std::int64_t{use.prompt_tokens} + use.completion_tokens)
        .end_object();
  }
  json.end_object();
}

} // namespace twill::net
