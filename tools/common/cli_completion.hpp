// cli_completion: what completions and man pages need to know of a command line. For cli_pages
// alone.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace twill::tools {

struct cli_option {
  std::vector<std::string> names;   ///< "-q", "--quiet"; none for a positional argument
  std::string value;                ///< what it takes: "FILE"; empty for a flag
  std::vector<std::string> choices; ///< the values that it may have, where they are few
  bool takes_path = false;          ///< whether files complete the value
  std::string description;
};

/// All options that --help lists, in its order.
std::vector<cli_option> cli_options(const CLI::App& app);

/// All sub-commands that --help lists, in their order.
std::vector<const CLI::App*> cli_commands(const CLI::App& app);

} // namespace twill::tools
