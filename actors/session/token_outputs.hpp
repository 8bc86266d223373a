// token_outputs: drawn tokens and scored prompt tokens as events give them to clients: the id, the
// bytes of the token, its log probability, and the most likely alternatives.
//
// Pure functions over an immutable tokenizer; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/messages.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::actors {

token_output to_token_output(const models::tokenizer& text, const token_ready& drawn);

/// One entry for each token of the prompt. `scores` has one for each but the first, whose log
/// probability is NaN.
std::vector<token_output> to_prompt_scores(const models::tokenizer& text,
                                           const std::vector<std::int32_t>& prompt,
                                           const std::vector<prompt_score>& scores);

} // namespace twill::actors
