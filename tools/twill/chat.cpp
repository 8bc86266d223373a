// `twill chat`: a conversation in the terminal, or one reply with --prompt or to a pipe.
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/base/cache_folder.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/chat_commands.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/conversation.hpp"
#include "tools/twill/interrupt.hpp"
#include "tools/twill/line_editor.hpp"
#include "tools/twill/message_reader.hpp"
#include "tools/twill/reply_writer.hpp"
#include "tools/twill/served_models.hpp"
#include "tools/twill/text_argument.hpp"

namespace twill::tools {
namespace {

struct chat_options {
  chat_flags flags;
  std::string prompt;
  std::string truncation = "disabled";
  bool lines = false;
  bool quiet = false;
  bool no_history = false;
};

/// Prints a note in dim colour on standard error. `text` may come from a server, so control
/// characters are replaced.
void put_note(const std::string& text) {
  const auto lines = wrapped(printable(text), columns_of(stream::error));
  std::fprintf(stderr, "%s\n", painted(stream::error, ink::dim, lines).c_str());
}

std::string note_of(const turn& reply, double seconds, const context_use& context) {
  if (reply.cancelled) return "[cancelled]";
  char text[128];
  std::snprintf(text, sizeof text, "[%lld + %lld tokens, %.2f s",
                static_cast<long long>(reply.input_tokens),
                static_cast<long long>(reply.output_tokens), seconds);
  std::string note = text;
  if (reply.cut)
    note += context.full() ? ", cut as the context is full" : ", cut at the token limit";
  if (context.nearly_full()) note += ", context " + std::to_string(context.percent()) + " % full";
  return note + "]";
}

turn one_turn(conversation& talk, const std::string& text, bool notes) {
  const auto begin = std::chrono::steady_clock::now();
  const bool knew = talk.context().nearly_full();
  reply_writer out;
  turn reply;
  try {
    reply = talk.say(text, [&](std::string_view delta) { out.add(delta); });
  } catch (...) {
    if (out.begun()) out.end(); // shows the part of the reply that has arrived
    throw;
  }
  out.end();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!notes) return reply;
  const auto context = talk.context();
  put_note(note_of(reply, took.count(), context));
  if (context.nearly_full() && !context.drops_turns && (!knew || context.full()))
    put_note((context.full() ? "The context is full: " : "The context is nearly full: ") +
             advice(context));
  return reply;
}

std::filesystem::path history_file(const chat_options& options) {
  const auto cache = cache_folder();
  return options.no_history || !cache ? std::filesystem::path() : *cache / "chat_history";
}

/// The first text of a chat: which model answers, and hints for the user.
std::string greeting(const conversation& talk, const std::vector<model_view>& models) {
  std::string text;
  for (const auto& model : models) {
    if (models.size() > 1 && model.id != talk.model()) continue;
    text = "You talk with " + model.id + " (" + model.family + ", " + model.quantization +
           ", context of " + std::to_string(model.context_tokens) + " tokens) at " +
           talk.where().url() + ".";
  }
  if (text.empty()) {
    text = talk.where().url() + (models.empty() ? " serves no model." : " serves");
    for (const auto& model : models)
      text += (&model == &models.front() ? " " : ", ") + model.id;
    if (!models.empty()) text += "; /model ID chooses one.";
  }
  return text +
         "\n/help lists commands, Tab completes them. Ctrl-C cancels a reply, Ctrl-D leaves.";
}

/// Ends the conversation and returns the program's exit status.
int left() {
  return noted_ending() != 0 ? 128 + noted_ending() : status_ok;
}

int converse(conversation& talk, const chat_options& options, bool notes) {
  std::vector<std::string> names;
  line_editor lines(history_file(options),
                    [&names](std::string_view begun) { return completions(begun, names); });
  if (lines.at_terminal()) {
    const auto models = served_models(talk.where());
    for (const auto& model : models) {
      names.push_back(model.id);
      if (models.size() == 1 || model.id == talk.model())
        talk.set_model(talk.model(), model.context_tokens);
    }
    if (notes) put_note(greeting(talk, models));
  }
  message_reader messages(lines);
  for (;;) {
    clear_interrupts();
    const auto message = messages.next();
    if (!message) {
      if (lines.at_terminal()) write_out("\n");
      return left();
    }
    if (message->command) {
      const auto outcome = carry_out(message->text, talk);
      if (outcome.leave) return status_ok;
      put_note(outcome.note);
      continue;
    }
    try {
      one_turn(talk, message->text, notes);
    } catch (const client_error& error) {
      // In a chat, a failed turn does not end the conversation. A script ends at its first failure.
      const bool full = dynamic_cast<const context_is_full*>(&error) != nullptr;
      const auto context = talk.context();
      if (!lines.at_terminal() && full && context.used_tokens > 0 && !context.drops_turns)
        throw client_error(error.what() +
                           std::string("; --truncation auto leaves out the oldest turns"));
      if (!lines.at_terminal()) throw;
      put_note(error.what());
      const bool alone = context.used_tokens == 0 || context.drops_turns;
      if (full) put_note((alone ? "" : "The context is full: ") + advice(context));
    }
    if (noted_ending() != 0) return left();
    if (interrupts() > 1) return status_interrupted;
  }
}

/// Sends one message, the text of --prompt or of standard input, and shows the reply.
int ask(conversation& talk, const std::string& given, bool notes) {
  std::string text;
  try {
    text = text_argument(given);
  } catch (const client_error&) {
    if (interrupts() > 0) return status_interrupted; // Ctrl-C while standard input was read
    throw;
  }
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  if (text.empty()) return status_ok;
  if (!one_turn(talk, text, notes).cancelled) return status_ok;
  return noted_ending() != 0 ? left() : status_interrupted;
}

int run_chat(const chat_options& options) {
  // Multi-byte characters can only be shown correctly in a locale that supports them.
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1)
    std::setlocale(LC_CTYPE, "C.UTF-8");
  count_interrupts();
  note_endings();
  chat_flags flags = options.flags;
  flags.drops_turns = options.truncation == "auto";
  conversation talk(std::move(flags));
  const bool notes = !options.quiet && is_terminal(stream::error);
  if (!options.prompt.empty()) return ask(talk, options.prompt, notes);
  if (!options.lines && ::isatty(STDIN_FILENO) != 1) return ask(talk, "-", notes);
  return converse(talk, options, notes);
}

} // namespace

void add_chat(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("chat", "talk with the model");
  auto options = std::make_shared<chat_options>();
  add_server_flags(*command, options->flags.server);
  add_sampling_flags(*command, options->flags.sampling);
  command
      ->add_option("--prompt", options->prompt,
                   "say this, print the reply and exit; - is standard input, and the default where "
                   "that is no terminal")
      ->type_name("TEXT");
  command->add_flag("--lines", options->lines, "every line of a pipe is a message of its own");
  command->add_option("--system", options->flags.system, "instructions for the model")
      ->type_name("TEXT");
  command
      ->add_option("--truncation", options->truncation,
                   "auto leaves out the oldest turns when the context is full (default: disabled)")
      ->check(CLI::IsMember({"auto", "disabled"}));
  command->add_flag("--no-history", options->no_history, "do not keep what is typed");
  command->add_flag("--quiet", options->quiet, "no notes on standard error");
  command->callback([options, &status] { status = run_chat(*options); });
}

} // namespace twill::tools
