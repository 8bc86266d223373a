// generate_parameters: reads `parameters` of Text Generation Inference's routes. The functions are
// pure, except that a seed is drawn.
//
// Parameters have the meaning that they have in TGI 3. Decoding is greedy unless `do_sample` or a
// parameter that changes the distribution is set; without `parameters`, tokens are sampled. The
// defaults of the model and of the configuration are not used, because TGI defines a default for
// every parameter.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/tgi/generate_reply.hpp"

namespace twill::net {

/// The request and the reply options that `parameters` determines. The caller must set
/// `options.stream` before it calls read_generate_parameters().
struct generate_parameters {
  actors::request& asked;
  generate_options& options;
  bool full_text = false; ///< the reply's text begins with the prompt
};

/// Reads `parameters` of the body; must be called also if `parameters` is absent.
void read_generate_parameters(fields& from, const codec_context& context, generate_parameters& to);

/// The members of `parameters`, for "/openapi.json".
field_rows generate_parameter_rows();

} // namespace twill::net
