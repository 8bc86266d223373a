// cli_pages: generates a program's man page and shell completions from the definition of its
// command line, so that they always list the options that the program has.
//
// The options `--print-man` and `--print-completion bash|zsh|fish` are for people who build
// packages; --help does not list them. All functions are free of state.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace twill::tools {

/// An additional section of a man page, beside the sections that are generated from the options.
struct man_section {
  std::string title; ///< for example "FILES"
  std::string text;  ///< plain text; an empty line separates paragraphs
};

/// Prints the man page or a completion script if the arguments ask for it and for nothing else.
/// Otherwise returns false, and the caller must parse the arguments. In the man page, `sections`
/// follow the options.
bool print_pages(const CLI::App& app, int argc, const char* const* argv,
                 const std::vector<man_section>& sections = {});

/// Returns, for tests, the pages that print_pages() prints. `shell` is bash, zsh or fish.
std::string man_page(const CLI::App& app, const std::vector<man_section>& sections);
std::string completion_script(const CLI::App& app, const std::string& shell);

} // namespace twill::tools
