// generate: the codecs of Text Generation Inference's own routes. Fields have the meaning that they
// have in TGI 3. The functions are pure, except that seeds are drawn.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// Codec of POST /generate; the reply is one object.
result<call> parse_generate(const value& body, const codec_context& context);
/// Codec of POST /generate_stream; the reply is server-sent events.
result<call> parse_generate_stream(const value& body, const codec_context& context);
/// Codec of POST /; the reply is server-sent events if `stream` is true, else a list with one
/// object.
result<call> parse_compat_generate(const value& body, const codec_context& context);

/// The fields that the bodies may contain, for "/openapi.json".
field_rows generate_rows();
field_rows compat_generate_rows();

} // namespace twill::net
