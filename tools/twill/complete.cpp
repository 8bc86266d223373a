// `twill complete`: continues a text over /v1/stream (net/STREAM.md), printing it as it comes.
#include <CLI/CLI.hpp>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/refusal.hpp"
#include "tools/twill/request_flags.hpp"
#include "tools/twill/text_argument.hpp"

namespace twill::tools {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

struct complete_options {
  std::string text;
  server_flags server;
  sampling_flags sampling;
  bool echo = false;
};

std::string submission(const complete_options& options) {
  json::object submit{{"op", "submit"}, {"id", "complete"}, {"prompt", options.text}};
  if (!options.server.model.empty()) submit["model"] = options.server.model;
  put_sampling(submit, options.sampling, "max_tokens");
  return json::serialize(submit);
}

/// Prints the text of one frame. Returns true when the frame is the last one.
bool take_frame(const std::string& text) {
  boost::system::error_code bad;
  const auto parsed = json::parse(text, bad);
  const auto* frame = parsed.if_object();
  if (bad || frame == nullptr) throw client_error("the daemon sent a frame that is no JSON object");
  if (const auto* error = frame->if_contains("error")) {
    const auto* why = error->is_object() ? error->get_object().if_contains("message") : nullptr;
    throw client_error(why != nullptr && why->is_string() ? std::string(why->get_string())
                                                          : json::serialize(*error));
  }
  if (const auto* piece = frame->if_contains("text"); piece != nullptr && piece->is_string())
    write_out(piece->get_string());
  const auto* done = frame->if_contains("done");
  return done != nullptr && done->is_bool() && done->get_bool();
}

int run_complete(const complete_options& options) {
  count_interrupts();
  const auto socket = open_socket(options.server.where(), "/v1/stream");
  socket->send(submission(options));
  if (options.echo) write_out(options.text);
  for (;;) {
    const auto frame = socket->receive(50ms);
    if (frame.has_value() && take_frame(*frame)) break;
    if (interrupts() == 0) continue;
    // Closing the socket would cancel too; an explicit message is clearer.
    socket->send(R"({"op":"cancel","id":"complete"})");
    write_out("\n");
    return status_interrupted;
  }
  write_out("\n");
  return status_ok;
}

} // namespace

void add_complete(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("complete", "continue a text");
  auto options = std::make_shared<complete_options>();
  command->add_option("text", options->text, "the text; - reads standard input, as it is")
      ->required()
      ->type_name("TEXT");
  command->add_flag("--echo", options->echo, "print the text before its continuation");
  add_server_flags(*command, options->server);
  add_sampling_flags(*command, options->sampling);
  command->callback([options, &status] {
    options->text = text_argument(options->text);
    status = run_complete(*options);
  });
}

} // namespace twill::tools
