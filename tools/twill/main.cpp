// twill: the command-line client. Exit status: 0 ok, 1 failure, 2 wrong usage, 130 interrupted.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "config/base/standard_streams.hpp"
#include "tools/common/cli_pages.hpp"
#include "tools/common/cli_usage.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"

int main(int argc, char** argv) {
  twill::open_missing_standard_streams();
  using namespace twill::tools;
  int status = status_ok;
  CLI::App app{
      "twill talks to a running twilld, which serves a model, and looks after models on disk.",
      "twill"};
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
  if (const auto why = misspelt_command(app, {argv + std::min(argc, 1), argv + argc});
      !why.empty()) {
    std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
                 why.c_str());
    return status_usage;
  }
  try {
    if (print_pages(app, argc, argv)) return status_ok;
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    return explain_usage(app, error);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
                 printable(error.what()).c_str());
    return status_failure;
  }
}
