// tokenize_inputs: POST /tokenize in TGI's form. Calls the tokenizer on the caller's thread.
#pragma once

#include <string>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// {inputs, add_special_tokens} -> [{id, text, start, stop}], where `start` and `stop` are the
/// token's place in `inputs` in bytes, as in TGI since 3.2.3. A token that is only part of a
/// character has the place of the whole character. A token that is not part of the text, such as a
/// BOS, has an empty place.
result<std::string> tokenize_inputs(fields& from, const codec_context& context);

} // namespace twill::net
