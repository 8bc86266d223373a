// What llama.cpp's server says of itself and does with a chat, without I/O: the bodies of
// GET /props, GET /slots and POST /apply-template. The first and the last call the tokenizer on the
// caller's thread.
#pragma once

#include <cstdint>
#include <string>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// `slots`: how many requests run at once. The model's name stands for its path.
result<std::string> props_body(const actors::model_info& model, const actors::engine_port& engine,
                               std::int32_t slots);

/// One row for each request that could run, `running` of which are said to be processing; which
/// ones is without meaning, as no request has a slot of its own.
std::string slots_body(const actors::model_info& model, std::int32_t slots, std::int32_t running);

/// {messages, tools, ...} -> {prompt}.
result<std::string> apply_template_body(const value& body, const codec_context& context);
field_rows apply_template_rows();

} // namespace twill::net
