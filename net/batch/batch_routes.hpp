// batch_routes: the handlers of /v1/files and /v1/batches, with OpenAI's request and reply formats.
//
// The router calls them on the strand of the client's connection. The disk is read and written on
// the worker thread; a download reads a piece of the file whenever the client has taken the one
// before.
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
