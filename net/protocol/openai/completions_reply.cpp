#include "net/protocol/openai/completions_reply.hpp"

#include <span>
#include <string>
#include <string_view>

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
    add_logprobs(json, state, part, first);
  else
    json.add(nullptr);
  add_finish(json, part);
  if (options().prompt_logprobs && first) {
    json.key("prompt_logprobs");
    add_prompt_logprobs(json, part.request);
  }
  if (!options().token_ids) return;
  json.key("token_ids");
  add_ids(json, part.tokens);
  json.key("prompt_token_ids");
  if (first)
    add_ids(json, prompt_ids(part.request));
  else
    json.add(nullptr);
}

namespace {

/// Number of UTF-8 characters: every byte except continuation bytes begins a character.
std::int32_t characters(std::string_view text) {
  std::int32_t n = 0;
  for (const char byte : text)
    n += (static_cast<unsigned char>(byte) & 0xC0) == 0x80 ? 0 : 1;
  return n;
}

/// Returns the alternative tokens at one position as a JSON object from token to log-probability.
/// The tokens are escaped here, because json_writer::key() does not escape.
std::string alternatives(const actors::token_output& token, bool as_ids) {
  std::string pairs = "{";
  bool chosen_seen = false;
  const auto add_pair = [&](const actors::token_logprob& one) {
    if (pairs.size() > 1) pairs += ',';
    append_json_string(pairs, token_text(one, as_ids));
    pairs += ':';
    json_writer(pairs).add(shown_logprob(one.logprob));
    chosen_seen = chosen_seen || one.id == token.chosen.id;
  };
  for (const auto& other : token.top)
    add_pair(other);
  if (!chosen_seen) add_pair(token.chosen);
  return pairs + "}";
}

} // namespace

/// Writes `logprobs`. If the prompt is echoed, the prompt's tokens come first. The prompt's first
/// token has no log-probability, because nothing precedes it.
void completions_reply::add_logprobs(json_writer& json, choice& state, const choice& part,
                                     bool first) const {
  const bool as_ids = options().tokens_as_ids;
  const std::string_view echo =
      first && !echoes_.empty() ? std::string_view(echoes_[part.request]) : std::string_view();
  const auto prompt = first && !echoes_.empty() ? prompt_scores(part.request)
                                                : std::span<const actors::token_output>();
  json.begin_object().key("tokens").begin_array();
  for (const auto& token : prompt)
    json.add(token_text(token.chosen, as_ids));
  for (const auto& token : part.tokens)
    json.add(token_text(token.chosen, as_ids));
  json.end_array().key("token_logprobs").begin_array();
  for (std::size_t i = 0; i < prompt.size(); ++i)
    if (i == 0)
      json.add(nullptr);
    else
      json.add(shown_logprob(prompt[i].chosen.logprob));
  for (const auto& token : part.tokens)
    json.add(shown_logprob(token.chosen.logprob));
  json.end_array().key("top_logprobs").begin_array();
  for (std::size_t i = 0; i < prompt.size(); ++i)
    json.raw(i == 0 ? "null" : alternatives(prompt[i], as_ids));
  for (const auto& token : part.tokens)
    json.raw(alternatives(token, as_ids));
  json.end_array().key("text_offset").begin_array();
  std::string_view rest = echo;
  for (const auto& token : prompt) {
    json.add(state.text_offset);
    // A token such as BOS, which the tokenizer adds before the prompt, is not part of the prompt's
    // text.
    if (!rest.starts_with(token.chosen.bytes)) continue;
    state.text_offset += characters(token.chosen.bytes);
    rest.remove_prefix(token.chosen.bytes.size());
  }
  state.text_offset += characters(rest);
  for (const auto& token : part.tokens) {
    json.add(state.text_offset);
    state.text_offset += characters(token.chosen.bytes);
  }
  json.end_array().end_object();
}

} // namespace twill::net
