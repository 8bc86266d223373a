// twill: the command-line client. Exit status: 0 ok, 1 failure, 2 wrong usage, 130 interrupted.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/nearest.hpp"
#include "config/base/standard_streams.hpp"
#include "tools/common/cli_pages.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"

namespace {

/// What to say of a first argument that is no command, or of a second one where `twill models`
/// takes a command; nothing when they are fine.
std::string misspelt(const CLI::App& app, int argc, char** argv) {
  const CLI::App* in = &app;
  std::string path = "twill";
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::string word = argv[i];
    std::vector<std::string> names;
    for (const auto* command : in->get_subcommands(nullptr))
      names.push_back(command->get_name());
    if (names.empty()) return {}; // arguments follow
    const auto known = std::find(names.begin(), names.end(), word);
    if (known == names.end()) {
      const std::vector<std::string_view> views(names.begin(), names.end());
      const auto meant = twill::nearest(word, views);
      return "`" + path + "` has no command \"" + twill::tools::printable(word) + "\"; " +
             (meant.empty() ? "`" + path + " --help` lists them"
                            : "did you mean `" + path + " " + std::string(meant) + "`?");
    }
    in = in->get_subcommand(word);
    path += " " + word;
  }
  return {};
}

} // namespace

int main(int argc, char** argv) {
  twill::open_missing_standard_streams();
  using namespace twill::tools;
  int status = status_ok;
  CLI::App app{"twill talks to a twilld daemon.", "twill"};
  app.set_version_flag("--version", "twill " TWILL_VERSION);
  app.footer("Exit status: 0 ok, 1 failure, 2 wrong usage, 130 interrupted.");
  app.require_subcommand(1);
  add_chat(app, status);
  add_complete(app, status);
  add_tokenize(app, status);
  add_status(app, status);
  add_top(app, status);
  add_models(app, status);
  add_config(app, status);
  add_default_model(app, status);
  add_doctor(app, status);
  add_grammar(app, status);
  add_inspect(app, status);
  add_key(app, status);
  add_kv(app, status);
  add_offload(app, status);
  add_replay(app, status);
  if (const auto why = misspelt(app, argc, argv); !why.empty()) {
    std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
                 why.c_str());
    return status_usage;
  }
  try {
    if (print_pages(app, argc, argv)) return status_ok;
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? status_ok : status_usage;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
                 printable(error.what()).c_str());
    return status_failure;
  }
}
