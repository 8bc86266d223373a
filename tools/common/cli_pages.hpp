// cli_pages: a program's man page and shell completions, written from the definition of its command
// line, so that they always tell of the options that the program has.
//
// `--print-man` and `--print-completion bash|zsh|fish` serve whoever builds a package; --help does
// not list them. Nothing here has a state.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace twill::tools {

/// A section that a man page has beside those that follow from the options.
struct man_section {
  std::string title; ///< "FILES"
  std::string text;  ///< plain text; an empty line begins a paragraph
};

/// Prints a page when the arguments ask for one and nothing else. False when they do not; the
/// caller then parses them. `sections` go into the man page behind the options.
bool print_pages(const CLI::App& app, int argc, const char* const* argv,
                 const std::vector<man_section>& sections = {});

/// The same pages as text, for tests. `shell` is bash, zsh or fish.
std::string man_page(const CLI::App& app, const std::vector<man_section>& sections);
std::string completion_script(const CLI::App& app, const std::string& shell);

} // namespace twill::tools
