// twilld: the daemon. Its exit status is 0 after a requested stop, 1 after a failure, and 2 when
// the command line is wrong.
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "config/base/log.hpp"
#include "config/base/read_file.hpp"
#include "config/base/scarce_memory.hpp"
#include "config/base/standard_streams.hpp"
#include "config/load.hpp"
#include "tools/common/cli_pages.hpp"
#include "tools/common/cli_usage.hpp"
#include "tools/twilld/daemon.hpp"
#include "tools/twilld/keys_file.hpp"
#include "tools/twilld/named_files.hpp"
#include "tools/twilld/signals.hpp"
#include "tools/twilld/time_slices.hpp"

namespace {

namespace config = twill::config;
using namespace twill::tools;

constexpr std::int64_t max_keys_bytes = 4 << 20; ///< limit on the size of `server.keys_file`

struct arguments {
  std::string model, listen, check_file, address_file;
  std::vector<std::string> files, settings;
  bool print = false, print_reference = false;
};

void define(CLI::App& app, arguments& args) {
  app.set_version_flag("--version", "twilld " TWILL_VERSION);
  app.add_option("--config", args.files,
                 "Read this TOML file of options, or all files *.toml of this folder in the order "
                 "of their names; the option may be given several times, and later values win")
      ->type_name("PATH")
      ->take_all()
      ->expected(1);
  app.add_option("--model", args.model,
                 "Serve this GGUF file, Hugging Face folder, model of Hugging Face's hub "
                 "(hf:ORG/NAME, with "
                 ":Q4_K_M or :FILE.gguf for one in GGUF; fetched when it is not in the cache) or "
                 "dummy:PRESET "
                 "(key `model.path`)")
      ->type_name("PATH");
  app.add_option("--listen", args.listen,
                 "Listen on this address; the default is 127.0.0.1:8080 (key `server.listen`)")
      ->type_name("HOST:PORT|unix:/PATH");
  app.add_option("--address-file", args.address_file,
                 "Write the addresses, one a line, to this file once requests are answered; "
                 "`server.user` must be able to")
      ->type_name("FILE");
  app.add_option("--set", args.settings, "Set one key; the option may be given several times")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1);
  app.add_option(
         "--check-config", args.check_file,
         "Check this configuration, a file or a folder, and what it names, such as the model, "
         "and exit")
      ->type_name("PATH");
  app.add_flag("--print-config", args.print, "Print the effective configuration and exit");
  app.add_flag("--print-reference", args.print_reference, "Print a page about every key and exit");
}

/// The sections of the man page beside those generated from the options.
std::vector<man_section> man_sections() {
  return {
      {"SIGNALS",
       "SIGTERM and SIGINT drain: streams under way may finish within server.drain_timeout. A "
       "second signal stops at once.\n\nSIGHUP reads the TLS files and the configuration again, "
       "applies what can change, and names in the log what needs a restart.\n\nSIGUSR1 and SIGUSR2 "
       "are ignored."},
      {"ENVIRONMENT",
       "NOTIFY_SOCKET, WATCHDOG_USEC: the service manager is told that requests are answered, "
       "the state in one line, and that the engine makes progress.\n\nLISTEN_FDS, LISTEN_PID: "
       "sockets that the service manager passes take the place of server.listen.\n\nHF_HOME, "
       "HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE, HTTPS_PROXY, NO_PROXY: where models "
       "of "
       "Hugging Face's hub lie and how they are fetched, as for its own programs."},
      {"EXIT STATUS",
       "0 after the daemon was told to stop, 1 after a failure, 2 when the command line is "
       "wrong. A GPU that a fault has lost ends the daemon with 1; started again, it can use the "
       "GPU."},
      {"FILES", "/etc/twill/twilld.toml: the configuration of an installed daemon. twilld "
                "--print-reference describes every key.\n\n/var/lib/twill: its models and files."}};
}

/// The settings of the command line. Later ones override earlier ones: first every --set in order,
/// then the named options.
std::vector<config::setting> settings_of(const arguments& args) {
  std::vector<config::setting> settings;
  for (const auto& text : args.settings) {
    auto parsed = config::parse_setting(text);
    if (!parsed.ok()) throw std::runtime_error(parsed.detail());
    settings.push_back(std::move(parsed).value());
  }
  if (!args.model.empty()) settings.push_back({"--model", "model.path", args.model, true});
  if (!args.listen.empty()) settings.push_back({"--listen", "server.listen", args.listen, true});
  return settings;
}

config::options must_load(const std::vector<std::string>& paths,
                          const std::vector<config::setting>& settings) {
  auto loaded = config::load_files(paths, settings);
  if (!loaded.ok()) throw std::runtime_error(loaded.detail());
  return std::move(loaded).value();
}

/// Checks that the models and files that the configuration names exist.
int check_files(const std::string& file, const config::options& options) {
  std::string all;
  for (const auto& fault : faults_of_named_files(options))
    all += (all.empty() ? "" : "\n") + file + ": " + fault;
  const auto keys = read_keys_file(
      options, [](const std::string& path) { return twill::read_file(path, max_keys_bytes); });
  if (!keys.ok()) all += (all.empty() ? "" : "\n") + keys.detail();
  if (!all.empty()) throw std::runtime_error(all);
  std::printf("%s: ok\n", file.c_str());
  return EXIT_SUCCESS;
}

int run(const arguments& args, std::chrono::steady_clock::time_point started) {
  if (args.print_reference) {
    std::fputs(config::print_reference().c_str(), stdout);
    return EXIT_SUCCESS;
  }
  const auto settings = settings_of(args);
  const auto paths =
      args.check_file.empty() ? args.files : std::vector<std::string>{args.check_file};
  const auto options = must_load(paths, settings);
  if (!args.check_file.empty() && !args.print) {
    return check_files(args.check_file, options);
  }
  if (args.print) {
    std::fputs(config::print_config(options).c_str(), stdout);
    return EXIT_SUCCESS;
  }
  twill::prepare_for_scarce_memory();
  ask_for_short_slices(); // threads inherit the request, so it is made before any thread is started
  twill::log::configure(*twill::log::level_named(options.log.level));
  if (options.log.format == "json") twill::log::use_format(twill::log::format::json);
  signal_waiter signals; // created early, because later threads inherit the blocked signals
  twill::log::write_from_thread();
  return run_daemon(
      {options, paths, config::list_files(paths).value(), settings, args.address_file, started},
      signals);
}

} // namespace

int main(int argc, char** argv) {
  twill::open_missing_standard_streams();
  const auto started = std::chrono::steady_clock::now();
  arguments args;
  CLI::App app{"twilld serves a large language model over WebSocket and HTTP.", "twilld"};
  define(app, args);
  try {
    if (print_pages(app, argc, argv, man_sections())) return EXIT_SUCCESS;
    app.parse(argc, argv);
    return run(args, started);
  } catch (const CLI::ParseError& error) {
    return explain_usage(app, error, "a model is given by `--model PATH`");
  } catch (const std::exception& error) {
    // When the configuration cannot be loaded, the message has one line per error.
    std::string line = error.what();
    for (std::size_t end = 0; (end = line.find('\n', end)) != line.npos; end += 9)
      line.replace(end, 1, "\ntwilld: ");
    twill::log::write_plain("twilld: " + line);
    return EXIT_FAILURE;
  }
}
