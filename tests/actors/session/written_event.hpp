// written_event: the whole content of an event as one readable line that can be compared.
#pragma once

#include <cmath>
#include <string>

#include "actors/port/engine_port.hpp"

namespace session_tests {

inline std::string written(const twill::actors::token_logprob& one) {
  return std::to_string(one.id) + "'" + one.bytes + "'" +
         (std::isnan(one.logprob) ? "nan" : std::to_string(one.logprob));
}

inline std::string written(const std::vector<twill::actors::token_output>& tokens) {
  std::string out;
  for (const auto& one : tokens) {
    out += " " + written(one.chosen) + "[";
    for (const auto& other : one.top)
      out += written(other) + " ";
    out += "]";
  }
  return out;
}

/// The message of an error is left out. The usage is written only with `with_use`.
inline std::string written(const twill::actors::event& e, bool with_use = true) {
  std::string out = "choice " + std::to_string(e.choice);
  if (e.started) out += " started " + std::string(e.continuity.empty() ? "" : "with continuity");
  for (const auto id : e.prompt_ids)
    out += " p" + std::to_string(id);
  if (!e.prompt_scores.empty()) out += " scores" + written(e.prompt_scores);
  if (!e.tokens.empty()) out += " tokens" + written(e.tokens);
  if (!e.text.empty()) out += " text '" + e.text + "'";
  for (const auto& part : e.parts)
    out += " part" + std::to_string(static_cast<int>(part.kind)) + "'" + part.text + "'" +
           std::to_string(part.call) + (part.complete ? "" : "!") + part.call_id;
  if (e.finish) out += " finish" + std::to_string(static_cast<int>(*e.finish));
  if (!e.stop_string.empty()) out += " stop '" + e.stop_string + "'";
  if (e.stop_token >= 0) out += " stop id " + std::to_string(e.stop_token);
  if (e.error)
    out += " error" + std::to_string(static_cast<int>(e.error->code)) + " of '" + e.error->param +
           "'" + (e.error->retry_after_s > 0 ? " retry" : "");
  if (e.last) out += " last";
  if (with_use)
    out += " use " + std::to_string(e.use.prompt_tokens) + " " +
           std::to_string(e.use.cached_tokens) + " " + std::to_string(e.use.completion_tokens);
  return out;
}

} // namespace session_tests
