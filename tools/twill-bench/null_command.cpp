#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/engine/descriptors.hpp"
#include "tools/twill-bench/engine/held_signals.hpp"
#include "tools/twill-bench/null/server.hpp"

namespace twill::bench {
namespace {

/// Splits "HOST:PORT" and stores both parts in the options.
void set_listen(null_options& options, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const char* const digits = text.data() + (colon == std::string::npos ? 0 : colon + 1);
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(digits, end, options.port);
  if (error != std::errc{} || rest != end || colon == 0)
    throw CLI::ValidationError("--listen", "must be HOST:PORT, got " + text);
  if (colon != std::string::npos) options.host = text.substr(0, colon);
}

void add_milliseconds(CLI::App& command, const std::string& flag, std::chrono::microseconds& into,
                      const std::string& help) {
  command
      .add_option_function<double>(
          flag,
          [&into](double ms) {
            into = std::chrono::microseconds(static_cast<std::int64_t>(ms * 1e3));
          },
          help)
      ->check(CLI::NonNegativeNumber);
}

int serve_nothing(const null_options& options) {
  const held_signals signals;
  raise_descriptor_limit();
  null_server server(options);
  std::printf("null server at %s\n", server.url().c_str());
  std::fflush(stdout);
  std::thread thread([&server] { server.run(); });
  while (!signals.came_within(std::chrono::milliseconds(1000))) {
  }
  server.stop();
  thread.join();
  return 0;
}

} // namespace

void add_null_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "null",
      "Runs a server that answers with as many tokens as a request asks for and does no work.");
  auto options = std::make_shared<null_options>();
  command->add_option_function<std::string>(
      "--listen", [options](const std::string& text) { set_listen(*options, text); },
      "The address to listen at, HOST:PORT; port 0 takes a free one (default: 127.0.0.1:9000).");
  command
      ->add_option("--threads", options->threads,
                   "The number of threads, each of which serves its own share of the connections "
                   "(default: 1).")
      ->check(CLI::Range(1u, 64u));
  command
      ->add_option("--tokens-per-write", options->tokens_per_write,
                   "The number of tokens that leave in one piece over HTTP (default: 1).")
      ->check(CLI::Range(1, 100000));
  add_milliseconds(*command, "--first-token-ms", options->first_token,
                   "The milliseconds from a request to its first token (default: 0).");
  add_milliseconds(*command, "--token-interval-ms", options->token_gap,
                   "The milliseconds between two tokens of a request (default: 0).");
  command->callback([options, &exit_code] { exit_code = serve_nothing(*options); });
}

} // namespace twill::bench
