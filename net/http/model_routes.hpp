// model_routes: routes that describe models, and routes of their tokenizers. Handlers run on the
// strand of the client's connection; calls of the tokenizer run on a worker thread.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer list_models(request_scope& scope);
http_answer show_model(request_scope& scope);
http_answer tokenize(request_scope& scope);
http_answer detokenize(request_scope& scope);
http_answer count_tokens(request_scope& scope); ///< of Anthropic's Messages API
http_answer render_chat(request_scope& scope);
http_answer render_completions(request_scope& scope);
http_answer tokenizer_info(request_scope& scope);

} // namespace twill::net
