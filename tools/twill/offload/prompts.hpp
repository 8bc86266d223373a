// What goes into `twill offload` and comes out: JSON lines, or prompts made up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/offload/job/offload_job.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::tools {

/// One object per line: "prompt" (text, or a list of token ids; "token_ids" is the same list) and
/// optionally "max_tokens". Throws client_error with file and line.
std::vector<models::offload::job_prompt>
read_prompts(const std::string& path, const models::tokenizer& text, std::int32_t max_new);

/// FlexGen's sentence, over and over, `length` tokens, each prompt beginning elsewhere in it.
std::vector<models::offload::job_prompt> make_prompts(const models::tokenizer& text, std::int64_t n,
                                                      std::int32_t length, std::int32_t max_new);

/// One object per output: index, text, token_ids, finish_reason (length, stop, interrupted).
void write_outputs(const std::string& path, const models::tokenizer& text,
                   const std::vector<models::offload::job_output>& outputs);

} // namespace twill::tools
