#include "tools/common/cli_usage.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "config/base/nearest.hpp"
#include "tools/common/cli_completion.hpp"
#include "tools/common/terminal.hpp"

namespace twill::tools {
namespace {

/// The innermost sub-command on the command line, with its full name such as "twill models pull".
struct reached {
  const CLI::App* app;
  std::string path;
};

reached deepest(const CLI::App& app) {
  reached at{&app, app.get_name()};
  for (auto parsed = at.app->get_subcommands(); !parsed.empty();
       parsed = at.app->get_subcommands()) {
    at.app = parsed.front();
    at.path += " " + at.app->get_name();
  }
  return at;
}

std::string nearest_of(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return std::string(twill::nearest(word, views));
}

/// The name of an option without its value: "--modle" for "--modle=x".
std::string option_of(const std::string& argument) {
  return argument.substr(0, argument.find('='));
}

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-';
}

/// The error message for an argument that no option or command accepts.
std::string unexpected(const reached& at, const std::string& argument, const std::string& hint) {
  const std::string word = "\"" + printable(option_of(argument)) + "\"";
  const std::string lists = "`" + at.path + " --help` lists what it takes";
  if (!is_option(argument))
    return "`" + at.path + "` has no place for the argument \"" + printable(argument) + "\"; " +
           (hint.empty() ? lists : hint);
  std::vector<std::string> names;
  for (const auto& option : cli_options(*at.app))
    names.insert(names.end(), option.names.begin(), option.names.end());
  const auto meant = nearest_of(option_of(argument), names);
  return "`" + at.path + "` has no option " + word + "; " +
         (meant.empty() ? lists : "did you mean `" + meant + "`?");
}

/// The message that lists the commands of a program that was called without one.
std::string command_list(const reached& at) {
  std::string out;
  if (const auto about = at.app->get_description(); !about.empty()) out += about + "\n";
  out += "Usage: " + at.path + " COMMAND [OPTIONS]\n\n";
  const auto commands = cli_commands(*at.app);
  std::size_t width = 0;
  for (const auto* command : commands)
    width = std::max(width, command->get_name().size());
  for (const auto* command : commands) {
    auto name = command->get_name();
    name.resize(width, ' ');
    auto text = command->get_description();
    text = text.substr(0, text.find(". "));
    if (text.ends_with('.')) text.pop_back();
    out += "  " + name + "  " + text + "\n";
  }
  return out + "\n`" + at.path + " COMMAND --help` lists the options of each.\n";
}

void complain(const CLI::App& app, const std::string& why) {
  std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, app.get_name() + ":").c_str(),
               why.c_str());
}

} // namespace

std::string misspelt_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  reached at{&app, app.get_name()};
  for (const auto& word : arguments) {
    if (is_option(word)) break;
    std::vector<std::string> names;
    for (const auto* command : at.app->get_subcommands(nullptr))
      names.push_back(command->get_name());
    if (names.empty()) break; // only positional arguments remain
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      const auto meant = nearest_of(word, names);
      return "`" + at.path + "` has no command \"" + printable(word) + "\"; " +
             (meant.empty() ? "`" + at.path + " --help` lists them"
                            : "did you mean `" + at.path + " " + meant + "`?");
    }
    at.app = at.app->get_subcommand(word);
    at.path += " " + word;
  }
  return {};
}

int explain_usage(const CLI::App& app, const CLI::ParseError& error, const std::string& hint) {
  if (error.get_exit_code() == 0) return app.exit(error); // --help and --version
  constexpr int wrong_usage = 2;
  const auto at = deepest(app);
  // A misspelt option is reported before an option that is missing as a consequence.
  auto left = app.remaining(true);
  const auto option = std::find_if(left.begin(), left.end(), is_option);
  if (option != left.end()) {
    complain(app, unexpected(at, *option, hint));
  } else if (!left.empty()) {
    complain(app, unexpected(at, left.front(), hint));
  } else if (at.app->get_require_subcommand_min() > 0 && at.app->get_subcommands().empty()) {
    std::fputs(command_list(at).c_str(), stderr);
  } else {
    const auto where = at.app == &app ? std::string() : "`" + at.path + "`: ";
    complain(app, where + printable(error.what()) + "; `" + at.path + " --help` tells more");
  }
  return wrong_usage;
}

} // namespace twill::tools
