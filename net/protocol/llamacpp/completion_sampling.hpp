// completion_sampling: the fields of llama.cpp's /completion that say how tokens are chosen. Pure,
// but for strings in `logit_bias`, which the engine tokenizes.
//
// What llama.cpp can and twill cannot is refused by its name where it is switched on; values that
// leave it off pass, since llama.cpp's clients send them as a matter of course.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// llama.cpp's defaults, where the model and the configuration leave a field without effect.
config::sampling_params llamacpp_defaults(const config::sampling_params& of_model);

/// Temperature to stop strings and forms, over what `to.sampling` has.
void read_completion_sampling(fields& from, const codec_context& context, actors::request& to);
/// What it reads but for the forms, for "/openapi.json".
void add_completion_sampling_rows(field_rows& to);

} // namespace twill::net
