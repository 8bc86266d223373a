// cli_completion: the data about a command line's options and commands from which cli_pages writes
// shell completions and man pages. Only cli_pages uses this header.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace twill::tools {

struct cli_option {
  std::vector<std::string> names;   ///< "-q", "--quiet"; empty for a positional argument
  std::string value;                ///< the name of its value, such as "FILE"; empty for a flag
  std::vector<std::string> choices; ///< the permitted values, if there is a short list of them
  bool takes_path = false;          ///< whether the shell completes the value with file names
  std::string description;
};

/// All options that --help lists, in the same order as there.
std::vector<cli_option> cli_options(const CLI::App& app);

/// All sub-commands that --help lists, in the same order as there.
std::vector<const CLI::App*> cli_commands(const CLI::App& app);

} // namespace twill::tools
