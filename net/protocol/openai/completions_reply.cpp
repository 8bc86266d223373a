#include "net/protocol/openai/completions_reply.hpp"

namespace twill::net {

void completions_reply::add_choice(json_writer& json, choice& state, const choice& part,
                                   bool whole) {
  const bool first = whole || !state.begun;
  if (first && !echoes_.empty())
    json.field("text", echoes_[part.request] + part.text);
  else
    json.field("text", part.text);
  json.key("logprobs");
  if (options().logprobs)
    add_logprobs(json, state, part);
  else
    json.add(nullptr);
  add_finish(json, part);
  if (!options().token_ids) return;
  json.key("token_ids");
  add_ids(json, part.tokens);
  json.key("prompt_token_ids");
  if (first)
    add_ids(json, prompt_ids(part.request));
  else
    json.add(nullptr);
}

void completions_reply::add_logprobs(json_writer& json, choice& state, const choice& part) const {
  const bool as_ids = options().tokens_as_ids;
  json.begin_object().key("tokens").begin_array();
  for (const auto& token : part.tokens)
    json.add(token_text(token.chosen, as_ids));
  json.end_array().key("token_logprobs").begin_array();
  for (const auto& token : part.tokens)
    json.add(shown_logprob(token.chosen.logprob));
  json.end_array().key("top_logprobs").begin_array();
  for (const auto& token : part.tokens) {
    std::string pairs; // a token's text is a key here, and keys need escaping
    bool chosen_seen = false;
    const auto add_pair = [&](const actors::token_logprob& one) {
      if (!pairs.empty()) pairs += ',';
      append_json_string(pairs, token_text(one, as_ids));
      pairs += ':';
      json_writer(pairs).add(shown_logprob(one.logprob));
      chosen_seen = chosen_seen || one.id == token.chosen.id;
    };
    for (const auto& other : token.top)
      add_pair(other);
    if (!chosen_seen) add_pair(token.chosen);
    json.raw("{" + pairs + "}");
  }
  json.end_array().key("text_offset").begin_array();
  for (const auto& token : part.tokens) {
    json.add(state.text_offset); // in characters: every byte but continuations starts one
    for (const char byte : token.chosen.bytes)
      state.text_offset += (static_cast<unsigned char>(byte) & 0xC0) == 0x80 ? 0 : 1;
  }
  json.end_array().end_object();
}

} // namespace twill::net
