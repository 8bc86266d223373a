// batch_routes: /v1/files and /v1/batches as the router calls them, in OpenAI's shapes.
//
// On session strands; reading and writing whole files is left to the worker thread or done piece by
// piece as the client reads.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

http_answer upload_file(request_scope& scope);
http_answer list_files(request_scope& scope);
http_answer show_file(request_scope& scope);
http_answer delete_file(request_scope& scope);
http_answer file_content(request_scope& scope);

http_answer create_batch(request_scope& scope);
http_answer list_batches(request_scope& scope);
http_answer show_batch(request_scope& scope);
http_answer cancel_batch(request_scope& scope);

} // namespace twill::net
