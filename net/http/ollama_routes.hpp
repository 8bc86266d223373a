// ollama_routes: what Ollama's API says of models. On session strands; files are looked at on the
// worker thread.
#pragma once

#include "net/http/request_scope.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

http_answer ollama_tags(request_scope& scope);
http_answer ollama_ps(request_scope& scope);
http_answer ollama_show(request_scope& scope);
http_answer ollama_pull(request_scope& scope);
http_answer ollama_version(request_scope& scope);
/// For what would change which models there are: /api/create, copy, push, delete and blobs.
http_answer refuse_model_change(request_scope& scope);

/// What the bodies of show and pull may have, for "/openapi.json".
field_rows ollama_show_rows();
field_rows ollama_pull_rows();

} // namespace twill::net
