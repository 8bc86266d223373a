#include "net/protocol/openai/chat_reply.hpp"

namespace twill::net {

void chat_reply::add_choice(json_writer& json, choice& state, const choice& part, bool whole) {
  json.key(whole ? "message" : "delta").begin_object();
  if (whole || !state.begun) json.field("role", "assistant");
  if (whole || !state.begun || !part.text.empty()) json.field("content", part.text);
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

void chat_reply::add_extras(json_writer& json, bool first) {
  if (!options().token_ids || !first) return;
  json.key("prompt_token_ids");
  add_ids(json, prompt_ids(0));
}

} // namespace twill::net
