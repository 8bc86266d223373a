#include "net/protocol/output_json.hpp"

#include <algorithm>
#include <cmath>

namespace twill::net {

void usage_tally::add(const actors::event& ev) {
  counted_ += static_cast<std::int32_t>(ev.tokens.size());
  total_.prompt_tokens = std::max(total_.prompt_tokens, ev.use.prompt_tokens);
  total_.cached_tokens = std::max(total_.cached_tokens, ev.use.cached_tokens);
  total_.completion_tokens =
      std::max({total_.completion_tokens, ev.use.completion_tokens, counted_});
}

actors::usage sum(std::span<const usage_tally> tallies) {
  actors::usage all;
  for (const auto& tally : tallies) {
    all.prompt_tokens += tally.total().prompt_tokens;
    all.cached_tokens += tally.total().cached_tokens;
    all.completion_tokens += tally.total().completion_tokens;
  }
  return all;
}

void add_usage(json_writer& json, const actors::usage& use) {
  json.begin_object()
      .field("prompt_tokens", use.prompt_tokens)
      .field("total_tokens", use.prompt_tokens + use.completion_tokens)
      .field("completion_tokens", use.completion_tokens);
  json.key("prompt_tokens_details").begin_object().field("cached_tokens", use.cached_tokens);
  json.end_object().end_object();
}

std::string_view finish_name(actors::finish_reason reason) {
  switch (reason) {
  case actors::finish_reason::stop:
    return "stop";
  case actors::finish_reason::tool_calls:
    return "tool_calls";
  case actors::finish_reason::length:
    break;
  }
  return "length";
}

void add_stop_reason(json_writer& json, std::string_view stop_string, std::int32_t stop_token,
                     std::span<const std::int32_t> stop_token_ids) {
  json.key("stop_reason");
  if (!stop_string.empty())
    json.add(stop_string);
  else if (std::find(stop_token_ids.begin(), stop_token_ids.end(), stop_token) !=
           stop_token_ids.end())
    json.add(stop_token);
  else
    json.add(nullptr);
}

void add_ids(json_writer& json, std::span<const std::int32_t> ids) {
  json.begin_array();
  for (const auto id : ids)
    json.add(id);
  json.end_array();
}

void add_ids(json_writer& json, std::span<const actors::token_output> tokens) {
  json.begin_array();
  for (const auto& token : tokens)
    json.add(token.chosen.id);
  json.end_array();
}

std::string token_text(const actors::token_logprob& token, bool as_id) {
  return as_id ? "token_id:" + std::to_string(token.id) : token.bytes;
}

float shown_logprob(float logprob) {
  return std::isfinite(logprob) ? std::max(logprob, -9999.0f) : -9999.0f;
}

namespace {

void add_token(json_writer& json, const actors::token_logprob& token, bool as_ids) {
  json.field("token", token_text(token, as_ids)).field("logprob", shown_logprob(token.logprob));
  json.key("bytes").begin_array();
  for (const char byte : token.bytes)
    json.add(static_cast<int>(static_cast<unsigned char>(byte)));
  json.end_array();
}

} // namespace

void add_chat_logprobs(json_writer& json, std::span<const actors::token_output> tokens,
                       bool as_ids) {
  json.begin_array();
  for (const auto& token : tokens) {
    json.begin_object();
    add_token(json, token.chosen, as_ids);
    json.key("top_logprobs").begin_array();
    for (const auto& other : token.top) {
      json.begin_object();
      add_token(json, other, as_ids);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

} // namespace twill::net
