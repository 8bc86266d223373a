// cli_usage: messages for a command line that cannot be parsed. A message names the option or
// command that was probably meant, the available commands when none was given, or what is missing.
//
// Nothing here has a state; everything runs on the thread that parses.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace twill::tools {

/// Why `arguments` (without the program's name) begin with no command of `app`, such as "`twill`
/// has no command "caht"; did you mean `twill chat`?"; empty when they do, or when none is needed.
std::string misspelt_command(const CLI::App& app, const std::vector<std::string>& arguments);

/// Says why the arguments could not be taken: --help and --version print what they ask for to
/// standard output and give 0; all else is told on standard error, with the name of the
/// (sub-)command in question, and gives 2. `hint` says where an argument without an option belongs.
int explain_usage(const CLI::App& app, const CLI::ParseError& error, const std::string& hint = {});

} // namespace twill::tools
