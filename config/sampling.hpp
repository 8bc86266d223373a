// sampling_params: how the next token of a sequence is chosen. All source folders use this one
// definition.
//
// A field means what the field of the same name means in vLLM's SamplingParams. A row of logits
// goes through these operations, in this order: a grammar's mask or that of allowed_token_ids,
// logit_bias, min_tokens' ban of end ids, bad_words' bans, penalties, temperature, min_p, top_k,
// top_p, draw. Reported log-probabilities are natural logarithms and are taken from the logits
// before all of these operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/breach.hpp"

namespace twill::config {

struct sampling_params {
  float temperature = 1.0f;          ///< 0 is greedy (argmax, lowest id on a tie); [0, 100]
  std::int32_t top_k = 0;            ///< keeps the k most likely tokens; 0 or -1: off
  float top_p = 1.0f;                ///< the nucleus' share of probability, [0, 1]; 0 is greedy
  float min_p = 0.0f;                ///< share of the likeliest token's probability, [0, 1]
  float repetition_penalty = 1.0f;   ///< over prompt and output ids, > 0; 1: off
  float presence_penalty = 0.0f;     ///< over output ids, [-2, 2]
  float frequency_penalty = 0.0f;    ///< over output ids, [-2, 2]
  std::optional<std::uint64_t> seed; ///< when absent, the server draws one
  std::vector<std::pair<std::int32_t, float>>
      logit_bias; ///< id and what is added to its logit, [-100, 100]

  /// Texts that the output must not contain. A grammar that allows nothing else takes precedence.
  std::vector<std::string> bad_words;
  std::vector<std::int32_t> allowed_token_ids; ///< only these are drawn; empty: all

  std::int32_t max_tokens = -1; ///< output tokens; 0: the prompt alone; -1: up to the context limit
  /// no end or stop before this many tokens, unless the grammar allows nothing else
  std::int32_t min_tokens = 0;
  bool ignore_eos = false;       ///< the model's end ids do not stop the sequence
  std::vector<std::string> stop; ///< texts that end the output; they are not returned
  std::vector<std::int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true; ///< special tokens yield no text

  std::int32_t n = 1;         ///< sequences per prompt
  std::int32_t logprobs = -1; ///< alternatives reported per token; -1: none at all
};

struct limit_options;
struct sampling_options;

/// Whether the most likely token is always chosen: at a temperature of 0, or at a top_p of 0, whose
/// nucleus has only that token. The function is pure.
bool is_greedy(const sampling_params& params);

/// Overwrites the model's own defaults with configured values; -1 leaves a default unchanged. The
/// function is pure.
void put_configured(const sampling_options& configured, sampling_params& defaults);

/// Checks every field against its range and the server's limits; token ids must be below
/// `vocab_size`. Returns the first breach; nullopt: there is none. The function is pure.
std::optional<breach> validate(const sampling_params& params, const limit_options& limits,
                               std::int32_t vocab_size);

} // namespace twill::config
