// subprocess: runs child processes without a shell. Each call blocks until the child has ended.
#pragma once

#include <string>
#include <vector>

namespace twill::tools {

/// Runs `command` (looked up in PATH) with its standard output redirected to the caller's standard
/// error. Returns its exit status; 127 when it cannot be started, 128 + n when signal n ended it.
int run_to_stderr(const std::vector<std::string>& command);

/// Runs `command` and discards all its output. Returns the exit status as run_to_stderr() does.
int run_quietly(const std::vector<std::string>& command);

struct program_output {
  int status = 0;
  std::string text; ///< what it wrote to standard output
};

/// Runs `command` and returns what it writes to standard output. Its standard error goes to that of
/// the caller.
program_output run_and_read(const std::vector<std::string>& command);

} // namespace twill::tools
