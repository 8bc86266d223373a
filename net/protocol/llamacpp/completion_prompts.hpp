// completion_prompts: reads every form that `prompt` of llama.cpp's /completion may have. The
// functions are pure, except that the engine's tokenizer may be called on the caller's thread.
#pragma once

#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

struct completion_prompt {
  decltype(actors::request::prompt) prompt;
  std::string shown; ///< the prompt's text as the reply repeats it
};

/// Reads `prompt`. A single prompt is a text, a list of token ids, a list that mixes ids and texts,
/// or {"prompt_string": text}. A list that contains no number is a list of prompts.
std::vector<completion_prompt> read_completion_prompts(fields& from, const codec_context& context);

} // namespace twill::net
