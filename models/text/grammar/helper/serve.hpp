// serve: the work of the helper process. It reads one request, compiles the grammar in it within
// the limits of time and memory that the request gives, and writes the answer.
//
// It is the whole work of twill-grammar's main(). Single-threaded.
#pragma once

namespace twill::models::grammar {

/// Returns the exit status of the process.
int serve_one_request(int request_fd, int answer_fd);

} // namespace twill::models::grammar
