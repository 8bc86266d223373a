// tokenize_inputs: TGI's form of POST /tokenize. Calls the tokenizer on the caller's thread.
#pragma once

#include <string>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// {inputs, add_special_tokens} -> [{id, text, start, stop}]: where in `inputs` each token stands,
/// in bytes, as TGI counts since 3.2.3. A token that is part of a character stands where the whole
/// character does. One that is no part of the text, such as a BOS, has an empty place.
result<std::string> tokenize_inputs(fields& from, const codec_context& context);

} // namespace twill::net
