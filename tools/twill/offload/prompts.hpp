// prompts: the input of `twill offload`, from JSON lines or generated, and its output as JSON
// lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/offload/job/offload_job.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::tools {

/// Reads one JSON object per line. Its keys are "prompt" (text or a list of token ids), or
/// "token_ids" instead, and optionally "max_tokens". Throws client_error with file and line.
std::vector<models::offload::job_prompt>
read_prompts(const std::string& path, const models::tokenizer& text, std::int32_t max_new);

/// Makes `n` prompts of `length` tokens that repeat FlexGen's example sentence, each starting at a
/// different place in it.
std::vector<models::offload::job_prompt> make_prompts(const models::tokenizer& text, std::int64_t n,
                                                      std::int32_t length, std::int32_t max_new);

/// Writes one object per output: index, text, token_ids, finish_reason (length, stop, interrupted).
void write_outputs(const std::string& path, const models::tokenizer& text,
                   const std::vector<models::offload::job_output>& outputs);

} // namespace twill::tools
