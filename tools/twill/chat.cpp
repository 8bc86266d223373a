// `twill chat`: a conversation in the terminal, or one reply with --prompt.
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "config/base/cache_folder.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/chat_commands.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/conversation.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/line_editor.hpp"

namespace twill::tools {
namespace {

struct chat_options {
  chat_flags flags;
  std::string prompt;
  bool quiet = false;
  bool no_history = false;
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

std::filesystem::path history_file(const chat_options& options) {
  const auto cache = cache_folder();
  return options.no_history || !cache ? std::filesystem::path() : *cache / "chat_history";
}

/// A message, which goes on in the next line after a '\\' at its end; nothing when the user leaves.
std::optional<std::string> read_message(line_editor& lines) {
  auto line = lines.read();
  if (!lines.at_terminal()) return line;
  while (line && line->ends_with('\\')) {
    line->back() = '\n';
    const auto more = lines.read();
    if (!more) return std::nullopt;
    *line += *more;
  }
  return line;
}

int converse(conversation& talk, const chat_options& options, bool notes) {
  line_editor lines(history_file(options), "> ");
  if (notes && lines.at_terminal())
    put_note(
        "/help lists commands; Ctrl-C cancels a reply and leaves at the prompt, as Ctrl-D does.");
  for (;;) {
    clear_interrupts();
    auto line = read_message(lines);
    if (!line) {
      if (lines.at_terminal()) write_out("\n");
      return status_ok;
    }
    if (line->find_first_not_of(" \t\r\n") == std::string::npos) continue;
    // Scripts say everything to the model.
    if (lines.at_terminal() && line->starts_with('/')) {
      if (!line->starts_with("//")) {
        const auto outcome = carry_out(*line, talk);
        if (outcome.leave) return status_ok;
        put_note(printable(outcome.note));
        continue;
      }
      line->erase(0, 1);
    }
    try {
      one_turn(talk, *line, notes);
    } catch (const client_error& error) {
      // One failed turn does not end a conversation; a script stops at once.
      if (!lines.at_terminal()) throw;
      put_note(printable(error.what()));
    }
    if (interrupts() > 1) return status_interrupted;
  }
}

int run_chat(const chat_options& options) {
  count_interrupts();
  conversation talk(options.flags);
  const bool notes = !options.quiet && is_terminal(stream::error);
  if (options.prompt.empty()) return converse(talk, options, notes);
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
  command->add_flag("--no-history", options->no_history, "do not keep what is typed");
  command->add_flag("--quiet", options->quiet, "no notes on standard error");
  command->callback([options, &status] { status = run_chat(*options); });
}

} // namespace twill::tools
