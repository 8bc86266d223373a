// POST /tokenize and /detokenize: vLLM's shape, llama.cpp's and TGI's, distinguished by their
// members; and GET /tokenizer_info.
//
// The functions call the engine's tokenizer on the caller's thread. Long texts take long, so the
// sessions run them on a worker thread.
#pragma once

#include <string>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// {prompt | messages, add_special_tokens} -> {count, max_model_len, tokens, token_strs};
/// {content, add_special, parse_special, with_pieces} -> {tokens};
/// {inputs, add_special_tokens} -> [{id, text, start, stop}].
result<std::string> tokenize_body(const value& body, const codec_context& context);

/// {tokens} -> {prompt, content}: the same text under both names.
result<std::string> detokenize_body(const value& body, const codec_context& context);

/// What the bodies may have, for "/openapi.json".
field_rows tokenize_rows();
field_rows detokenize_rows();

/// vLLM's shape, which is that of a tokenizer_config.json: `tokenizer_class`, the texts of special
/// tokens, limits, `chat_template`. No paths of files.
result<std::string> tokenizer_info_body(const actors::model_info& model,
                                        const actors::engine_port& engine);

} // namespace twill::net
