// generate_parameters: `parameters` of Text Generation Inference's routes. Pure, but for the seed
// that they draw.
//
// A request means here what it means in TGI 3: it is greedy unless `do_sample` or a parameter that
// changes the distribution is set, and also samples where `parameters` is absent. The model's and
// the configured defaults do not count, as every parameter has TGI's.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/tgi/generate_reply.hpp"

namespace twill::net {

/// What `parameters` makes of a request and of its reply. `options.stream` must be known already.
struct generate_parameters {
  actors::request& asked;
  generate_options& options;
  bool full_text = false; ///< the text begins with the prompt
};

/// Reads `parameters` of the body, also where it is absent.
void read_generate_parameters(fields& from, const codec_context& context, generate_parameters& to);

/// The members of `parameters`, for "/openapi.json".
field_rows generate_parameter_rows();

} // namespace twill::net
