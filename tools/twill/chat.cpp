// `twill chat`: a conversation in the terminal, or one reply with --prompt.
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/conversation.hpp"
#include "tools/twill/interrupt.hpp"

namespace twill::tools {
namespace {

struct chat_options {
  chat_flags flags;
  std::string prompt;
  bool quiet = false;
};

void put_note(const std::string& text) {
  std::fprintf(stderr, "%s\n", painted(stream::error, ink::dim, text).c_str());
}

std::string note_of(const turn& reply, double seconds) {
  if (reply.cancelled) return "[cancelled]";
  char text[128];
  std::snprintf(text, sizeof text, "[%lld + %lld tokens, %.2f s%s]",
                static_cast<long long>(reply.input_tokens),
                static_cast<long long>(reply.output_tokens), seconds,
                reply.cut ? ", cut at the token limit" : "");
  return text;
}

turn one_turn(conversation& talk, const std::string& text, bool notes) {
  const auto begin = std::chrono::steady_clock::now();
  const turn reply = talk.say(text, write_out);
  write_out("\n");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (notes) put_note(note_of(reply, took.count()));
  return reply;
}

int converse(conversation& talk, bool notes) {
  const bool at_terminal = is_terminal(stream::out);
  if (notes) put_note("Ctrl-C cancels a reply and leaves at the prompt; Ctrl-D leaves.");
  for (;;) {
    clear_interrupts();
    if (at_terminal) {
      std::fputs(painted(stream::out, ink::bold, "> ").c_str(), stdout);
      std::fflush(stdout);
    }
    std::string line;
    if (!std::getline(std::cin, line)) {
      if (at_terminal) write_out("\n");
      return status_ok;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      one_turn(talk, line, notes);
    } catch (const client_error& error) {
      // One failed turn does not end a conversation; a script stops at once.
      if (!at_terminal) throw;
      put_note(error.what());
    }
    if (interrupts() > 1) return status_interrupted;
  }
}

int run_chat(const chat_options& options) {
  count_interrupts();
  conversation talk(options.flags);
  const bool notes = !options.quiet && is_terminal(stream::error);
  if (options.prompt.empty()) return converse(talk, notes);
  return one_turn(talk, options.prompt, notes).cancelled ? status_interrupted : status_ok;
}

} // namespace

void add_chat(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("chat", "talk with the model");
  auto options = std::make_shared<chat_options>();
  add_server_flags(*command, options->flags.server);
  add_sampling_flags(*command, options->flags.sampling);
  command->add_option("--prompt", options->prompt, "say this, print the reply and exit")
      ->type_name("TEXT");
  command->add_option("--system", options->flags.system, "instructions for the model")
      ->type_name("TEXT");
  command->add_flag("--quiet", options->quiet, "no notes on standard error");
  command->callback([options, &status] { status = run_chat(*options); });
}

} // namespace twill::tools
