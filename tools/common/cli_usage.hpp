// cli_usage: error messages for a command line that cannot be parsed. A message names the option or
// command that was probably meant, the available commands when none was given, or what is missing.
//
// All functions are free of state and run on the thread that parses the command line.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace twill::tools {

/// Returns an error message when `arguments` (without the program's name) do not begin with a
/// command of `app`, for example "`twill` has no command "caht"; did you mean `twill chat`?".
/// Returns an empty text when they do begin with one, or when `app` needs no command.
std::string misspelt_command(const CLI::App& app, const std::vector<std::string>& arguments);

/// Prints the reason for a parse error and returns the exit status. --help and --version print
/// their text to standard output and give 0. Every other error is printed to standard error,
/// together with the name of the (sub-)command concerned, and gives 2. `hint` says how to pass an
/// argument that belongs to no option.
int explain_usage(const CLI::App& app, const CLI::ParseError& error, const std::string& hint = {});

} // namespace twill::tools
