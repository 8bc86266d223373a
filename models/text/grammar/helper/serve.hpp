// serve: the helper's side: reads one request, compiles it within its limits, writes the answer.
//
// For the main() of twill-grammar, which does nothing else. Single-threaded.
#pragma once

namespace twill::models::grammar {

/// The process's exit status.
int serve_one_request(int request_fd, int answer_fd);

} // namespace twill::models::grammar
