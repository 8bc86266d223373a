// The bodies of three routes of llama.cpp's server, without I/O: GET /props (properties of the
// server), GET /slots (its requests) and POST /apply-template (a chat as prompt text). /props and
// /apply-template call the tokenizer on the caller's thread.
#pragma once

#include <cstdint>
#include <string>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// `slots` is the most requests that run at once. The model's name is written in place of its path.
result<std::string> props_body(const actors::model_info& model, const actors::engine_port& engine,
                               std::int32_t slots);

/// Writes one row for each of the `slots` requests that can run at once, and marks `running` of the
/// rows as processing. Which rows are marked has no meaning, because twill assigns no slots to
/// requests.
std::string slots_body(const actors::model_info& model, std::int32_t slots, std::int32_t running);

/// Returns the prompt that the chat template makes: {messages, tools, ...} -> {prompt}.
result<std::string> apply_template_body(const value& body, const codec_context& context);
field_rows apply_template_rows();

} // namespace twill::net
