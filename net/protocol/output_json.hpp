// JSON fragments that several APIs share: usage, log-probabilities, ids, finish reasons. The
// functions are pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

/// Sums up the tokens of one request. Counts come from the totals that events carry, or from
/// counting the tokens of the events, whichever is larger.
class usage_tally {
public:
  void add(const actors::event& ev);
  const actors::usage& total() const noexcept { return total_; }

private:
  actors::usage total_;
  std::int32_t counted_ = 0;
};

actors::usage sum(std::span<const usage_tally> tallies);

/// Writes {"prompt_tokens":..., "completion_tokens":..., ...}.
void add_usage(json_writer& json, const actors::usage& use);

std::string_view finish_name(actors::finish_reason reason);

/// Writes `stop_reason`: the stop string if there is one, else the id of the token that ended the
/// output if that is one of the request's stop_token_ids, else null.
void add_stop_reason(json_writer& json, std::string_view stop_string, std::int32_t stop_token,
                     std::span<const std::int32_t> stop_token_ids);

void add_ids(json_writer& json, std::span<const std::int32_t> ids);
void add_ids(json_writer& json, std::span<const actors::token_output> tokens);

/// The bytes of a token, or "token_id:N" if `as_id` is set.
std::string token_text(const actors::token_logprob& token, bool as_id);

/// A log-probability as replies write it. JSON has no minus infinity; -9999 stands for it, as in
/// vLLM.
float shown_logprob(float logprob);

/// [{"token","logprob","bytes","top_logprobs":[...]}], as in the Chat and Responses APIs.
void add_chat_logprobs(json_writer& json, std::span<const actors::token_output> tokens,
                       bool as_ids);

} // namespace twill::net
