// completion_biases: `logit_bias` of llama.cpp's /completion: pairs [token, bias] or an object,
// where a token is an id or a text, and a bias a number, or false for a ban. The engine tokenizes
// texts on the caller's thread.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

void read_completion_biases(fields& from, const codec_context& context,
                            config::sampling_params& to);

} // namespace twill::net
