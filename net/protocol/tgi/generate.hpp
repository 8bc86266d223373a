// generate: the codecs of Text Generation Inference's own routes, whose requests mean what they
// mean in TGI 3. Pure, but for the seed they draw.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// POST /generate: one object.
result<call> parse_generate(const value& body, const codec_context& context);
/// POST /generate_stream: server-sent events.
result<call> parse_generate_stream(const value& body, const codec_context& context);
/// POST /: events where `stream` is true, else a list with one object.
result<call> parse_compat_generate(const value& body, const codec_context& context);

/// What the bodies may have, for "/openapi.json".
field_rows generate_rows();
field_rows compat_generate_rows();

} // namespace twill::net
