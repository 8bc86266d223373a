// Child processes without a shell. Each call blocks until the child has ended.
#pragma once

#include <string>
#include <vector>

namespace twill::tools {

/// Runs `command` (looked up in PATH), its standard output joined to our standard error, and
/// returns its exit status; 127 when it cannot be started, 128 + n when signal n ended it.
int run_to_stderr(const std::vector<std::string>& command);

/// Runs `command` as above, with all its output thrown away.
int run_quietly(const std::vector<std::string>& command);

struct program_output {
  int status = 0;
  std::string text; ///< its standard output
};

/// Runs `command` as above and reads its standard output; the rest goes to our standard error.
program_output run_and_read(const std::vector<std::string>& command);

} // namespace twill::tools
