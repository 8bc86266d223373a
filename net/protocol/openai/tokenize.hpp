// POST /tokenize and /detokenize in the forms of vLLM, llama.cpp and TGI, which are distinguished
// by their members, and GET /tokenizer_info.
//
// The functions call the engine's tokenizer on the caller's thread. Long texts take a long time, so
// sessions call the functions on a worker thread.
#pragma once

#include <string>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

/// Tokenizes a text in one of three forms:
/// {prompt|messages, add_special_tokens} -> {count, max_model_len, tokens, token_strs} (vLLM);
/// {content, add_special, parse_special, with_pieces} -> {tokens} (llama.cpp);
/// {inputs, add_special_tokens} -> [{id, text, start, stop}] (TGI).
result<std::string> tokenize_body(const value& body, const codec_context& context);

/// {tokens} -> {prompt, content}: both members have the same text.
result<std::string> detokenize_body(const value& body, const codec_context& context);

/// The fields that the bodies may contain, for "/openapi.json".
field_rows tokenize_rows();
field_rows detokenize_rows();

/// Returns an object in the form of a tokenizer_config.json, as vLLM does: `tokenizer_class`, the
/// texts of special tokens, limits, `chat_template`. It contains no file paths.
result<std::string> tokenizer_info_body(const actors::model_info& model,
                                        const actors::engine_port& engine);

} // namespace twill::net
