// ollama_routes: the routes of Ollama's API that describe models. Handlers run on the strand of the
// client's connection; the file system is read on a worker thread.
#pragma once

#include "net/http/request_scope.hpp"
#include "net/protocol/field_table.hpp"

namespace twill::net {

http_answer ollama_tags(request_scope& scope);
http_answer ollama_ps(request_scope& scope);
http_answer ollama_show(request_scope& scope);
http_answer ollama_pull(request_scope& scope);
http_answer ollama_version(request_scope& scope);
/// Refuses the routes that would add, change or remove models: /api/create, copy, push, delete and
/// blobs.
http_answer refuse_model_change(request_scope& scope);

/// The fields that the bodies of /api/show and /api/pull may contain, for "/openapi.json".
field_rows ollama_show_rows();
field_rows ollama_pull_rows();

} // namespace twill::net
