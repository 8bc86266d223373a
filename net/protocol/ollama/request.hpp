// What POST /api/chat and /api/generate of Ollama's API have in common. Pure.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/ollama/reply.hpp"

namespace twill::net {

struct ollama_call {
  actors::request request;
  ollama_reply_options reply;
  value_object template_arguments; ///< from `think`
  /// Tokens that the output shall have room for, where a prompt that is too long is cut
  /// (`truncate`, which is true unless a request says otherwise): at most an eighth of the context.
  /// -1: it is not cut.
  std::int32_t room = -1;
  bool unloads = false; ///< `keep_alive` is 0
};

/// model, stream, format, options, keep_alive, think, truncate, shift, logprobs, top_logprobs.
ollama_call read_ollama_call(fields& from, const codec_context& context);

/// What read_ollama_call() reads, for "/openapi.json".
void add_ollama_rows(field_rows& to);

/// A request without a prompt: it ends once the model is loaded, or at once where it asks that the
/// model be unloaded. Models here stay loaded as the configuration says.
call load_or_unload(ollama_call asked);

} // namespace twill::net
