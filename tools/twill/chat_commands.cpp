#include "tools/twill/chat_commands.hpp"

#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "config/base/nearest.hpp"
#include "tools/common/terminal.hpp"
#include "tools/twill/served_models.hpp"

namespace twill::tools {
namespace {

using action = std::string (*)(const std::string& rest, conversation& talk);

struct command {
  std::string_view name;
  std::string_view argument;
  std::string_view help;
  action run; ///< null: the command ends the chat
};

std::string help(const std::string&, conversation&);

std::string set_system(const std::string& rest, conversation& talk) {
  if (rest.empty())
    return talk.system().empty() ? "There are no instructions; /system TEXT gives some."
                                 : "Instructions: " + talk.system();
  talk.set_system(rest == "none" ? std::string() : rest);
  return rest == "none" ? "The instructions are gone."
                        : "The model gets these instructions from now on.";
}

std::string clear(const std::string&, conversation& talk) {
  talk.forget();
  return "The conversation begins anew.";
}

/// Writes the conversation to a new file that only this user can read: as JSON messages when the
/// name ends in .json, otherwise as text.
std::string save(const std::string& rest, conversation& talk) {
  if (rest.empty()) return "/save needs the name of a file that is not there yet.";
  const bool json = rest.ends_with(".json");
  std::string text;
  if (json) {
    text = boost::json::serialize(talk.messages()) + "\n";
  } else {
    for (const auto& message : talk.messages())
      text += std::string(message.at("role").as_string()) + ": " +
              std::string(message.at("content").as_string()) + "\n\n";
  }
  const int fd = ::open(rest.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return rest + " was not written: " + std::strerror(errno);
  std::string_view left = text;
  while (!left.empty()) {
    const auto n = ::write(fd, left.data(), left.size());
    if (n < 0) break;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  const int why = errno;
  ::close(fd);
  return left.empty() ? "Saved to " + rest + "."
                      : rest + " was not written whole: " + std::strerror(why);
}

std::string choose_model(const std::string& rest, conversation& talk) {
  try {
    std::string known;
    for (const auto& model : served_models(talk.where())) {
      if (model.id == rest) {
        talk.set_model(rest, model.context_tokens);
        return "The next replies come from " + rest + ".";
      }
      known += (known.empty() ? "" : ", ") + model.id;
    }
    return (rest.empty() ? "Served models: " : "\"" + rest + "\" is not served; there is ") + known;
  } catch (const client_error& error) {
    return error.what();
  }
}

std::string tell_context(const std::string&, conversation& talk) {
  return described(talk.context());
}

std::string set_truncation(const std::string& rest, conversation& talk) {
  if (rest != "auto" && rest != "disabled")
    return "/truncation must be followed by auto or disabled, got \"" + rest + "\".";
  talk.drop_turns(rest == "auto");
  return rest == "auto" ? "When the context is full, its oldest turns are left out from now on."
                        : "When the context is full, nothing more can be said.";
}

constexpr std::array commands{
    command{"help", "", "lists these commands", help},
    command{"system", " TEXT", "gives the model instructions; none takes them away", set_system},
    command{"clear", "", "forgets the conversation", clear},
    command{"save", " FILE",
            "writes the conversation to a new file, as JSON when its name ends in .json", save},
    command{"model", " ID", "chooses the model; without ID, lists them", choose_model},
    command{"context", "", "tells how full the context is", tell_context},
    command{"truncation", " auto|disabled", "leaves out the oldest turns when the context is full",
            set_truncation},
    command{"quit", "", "leaves, as /exit and /bye do", nullptr},
    command{"exit", "", "", nullptr},
    command{"bye", "", "", nullptr},
};

std::string help(const std::string&, conversation&) {
  std::string text;
  for (const auto& one : commands) {
    if (one.help.empty()) continue; // an alias of another command
    std::string usage = "/" + std::string(one.name) + std::string(one.argument);
    usage.resize(std::max<std::size_t>(usage.size(), 25), ' ');
    text += usage + " " + std::string(one.help) + "\n";
  }
  return text +
         "//TEXT                    says a text that begins with '/'\n"
         "Tab completes commands. What is pasted is one message, as are the lines between two "
         "\"\"\"; a line that ends in '\\' goes on in the next one. Ctrl-C cancels a reply or a "
         "line; in an empty line it leaves, as Ctrl-D does.";
}

} // namespace

command_outcome carry_out(const std::string& line, conversation& talk) {
  const auto end = line.find_first_of(" \t");
  const auto word = line.substr(1, end == line.npos ? line.npos : end - 1);
  const auto begin = end == line.npos ? line.npos : line.find_first_not_of(" \t", end);
  auto rest = begin == line.npos ? std::string() : line.substr(begin);
  rest.erase(rest.find_last_not_of(" \t\r") + 1);
  std::vector<std::string_view> names;
  for (const auto& one : commands) {
    if (one.name == word)
      return one.run == nullptr ? command_outcome{{}, true}
                                : command_outcome{one.run(rest, talk), false};
    names.push_back(one.name);
  }
  const auto meant = nearest(word, names);
  return {
      "There is no command /" + word +
          (meant.empty() ? "; /help lists all." : "; did you mean /" + std::string(meant) + "?"),
      false};
}

std::vector<std::string> completions(std::string_view begun,
                                     const std::vector<std::string>& models) {
  std::vector<std::string> all;
  const auto add = [&](std::string whole) {
    // Names with control characters, which could for example move the cursor, are not offered.
    if (whole.starts_with(begun) && printable(whole) == whole) all.push_back(std::move(whole));
  };
  if (!begun.starts_with('/')) return all;
  if (begun.find_first_of(" \t\n") == begun.npos) {
    for (const auto& one : commands)
      if (!one.help.empty()) add("/" + std::string(one.name) + (one.argument.empty() ? "" : " "));
    return all;
  }
  for (const auto& model : models)
    add("/model " + model);
  for (const char* choice : {"/truncation auto", "/truncation disabled", "/system none"})
    add(choice);
  return all;
}

} // namespace twill::tools
