#include "actors/session/token_outputs.hpp"

#include <cstddef>
#include <limits>
#include <utility>

namespace twill::actors {

namespace {

token_logprob to_logprob(const models::tokenizer& text, std::int32_t id, float logprob) {
  return {id, text.token_bytes(id, true), logprob, text.is_special(id)};
}

token_output to_output(const models::tokenizer& text, std::int32_t id, float logprob,
                       const std::vector<std::pair<std::int32_t, float>>& top) {
  token_output out;
  out.chosen = to_logprob(text, id, logprob);
  out.top.reserve(top.size());
  for (const auto& [other, other_logprob] : top)
    out.top.push_back(to_logprob(text, other, other_logprob));
  return out;
}

} // namespace

token_output to_token_output(const models::tokenizer& text, const token_ready& drawn) {
  return to_output(text, drawn.token, drawn.logprob, drawn.top);
}

std::vector<token_output> to_prompt_scores(const models::tokenizer& text,
                                           const std::vector<std::int32_t>& prompt,
                                           const std::vector<prompt_score>& scores) {
  std::vector<token_output> out;
  out.reserve(prompt.size());
  for (std::size_t i = 0; i < prompt.size(); ++i)
    out.push_back(i == 0 ? to_output(text, prompt[i], std::numeric_limits<float>::quiet_NaN(), {})
                         : to_output(text, prompt[i], scores[i - 1].logprob, scores[i - 1].top));
  return out;
}

} // namespace twill::actors
