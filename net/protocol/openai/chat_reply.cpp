#include "net/protocol/openai/chat_reply.hpp"

namespace twill::net {

void chat_reply::add_choice(json_writer& json, choice& state, const choice& part, bool whole) {
  json.key(whole ? "message" : "delta").begin_object();
  const bool first = whole || !state.begun;
  if (first) json.field("role", "assistant");
  if (!part.text.empty() || (first && part.calls.empty()))
    json.field("content", part.text);
  else if (first)
    json.field("content", nullptr); // an answer that consists of tool calls has null content
  if (!part.reasoning.empty()) json.field("reasoning_content", part.reasoning);
  if (!part.calls.empty()) add_calls(json, part, whole);
  if (whole) json.field("refusal", nullptr);
  json.end_object().key("logprobs");
  if (options().logprobs) {
    json.begin_object().key("content");
    add_chat_logprobs(json, part.tokens, options().tokens_as_ids);
    json.end_object();
  } else {
    json.add(nullptr);
  }
  add_finish(json, part);
  if (!options().token_ids) return;
  json.key("token_ids");
  add_ids(json, part.tokens);
}

void chat_reply::add_calls(json_writer& json, const choice& part, bool whole) const {
  const auto add_function = [&](const made_call& call) {
    json.begin_object();
    if (call.begins) json.field("name", call.name);
    json.field("arguments", call.arguments).end_object();
  };
  if (options().legacy_calls) {
    json.key("function_call");
    return add_function(part.calls.front());
  }
  json.key("tool_calls").begin_array();
  for (const auto& call : part.calls) {
    json.begin_object();
    if (!whole) json.field("index", call.index);
    if (call.begins) json.field("id", call.id).field("type", "function");
    json.key("function");
    add_function(call);
    json.end_object();
  }
  json.end_array();
}

void chat_reply::add_extras(json_writer& json, bool first) {
  if (options().prompt_logprobs && first) {
    json.key("prompt_logprobs");
    add_prompt_logprobs(json, 0);
  }
  if (!options().token_ids || !first) return;
  json.key("prompt_token_ids");
  add_ids(json, prompt_ids(0));
}

} // namespace twill::net
