// What Ollama's POST /api/chat and POST /api/generate have in common. The functions are pure,
// except that each reply gets a new id and the current time.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/ollama/reply.hpp"

namespace twill::net {

struct ollama_call {
  actors::request request;
  ollama_reply_options reply;
  value_object template_arguments; ///< arguments for the chat template, from the field `think`
  /// Tokens of the context to reserve for the output when a prompt that is too long is cut; at most
  /// an eighth of the context. -1: the prompt is not cut, because the request says `truncate`
  /// false.
  std::int32_t room = -1;
  bool unloads = false; ///< the request has `keep_alive` 0: it asks to unload the model
};

/// Reads model, stream, format, options, keep_alive, think, truncate, shift, logprobs,
/// top_logprobs.
ollama_call read_ollama_call(fields& from, const codec_context& context);

/// Adds the rows of the fields that read_ollama_call() reads, for "/openapi.json".
void add_ollama_rows(field_rows& to);

/// Makes the call of a request without a prompt. Such a request asks to load or to unload a model.
/// A call to load ends once the model is loaded. A call to unload ends at once, and the model stays
/// loaded, because only the configuration decides when a model is unloaded.
call load_or_unload(ollama_call asked);

} // namespace twill::net
