// model_routes: the models and their tokenizers over HTTP. On session strands; tokenizing is left
// to the worker thread.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer list_models(request_scope& scope);
http_answer show_model(request_scope& scope);
http_answer tokenize(request_scope& scope);
http_answer detokenize(request_scope& scope);
http_answer count_tokens(request_scope& scope); ///< Anthropic's
http_answer render_chat(request_scope& scope);
http_answer render_completions(request_scope& scope);
http_answer tokenizer_info(request_scope& scope);

} // namespace twill::net
