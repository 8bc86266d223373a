// completion_biases: reads `logit_bias` of llama.cpp's /completion, which is a list of pairs
// [token, bias] or an object. A token is an id or a text; a bias is a number, or false to ban the
// token. The engine's tokenizer converts texts to ids on the caller's thread.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

void read_completion_biases(fields& from, const codec_context& context,
                            config::sampling_params& to);

} // namespace twill::net
