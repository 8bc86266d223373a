// chat_commands: the commands of `twill chat`. A command is a line that begins with '/'; the client
// carries it out and does not send it to the model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/twill/conversation.hpp"

namespace twill::tools {

struct command_outcome {
  std::string note; ///< text for the user; may have several lines
  bool leave = false;
};

/// Carries out the command `line`, which begins with '/'. An error is described in the note of the
/// outcome.
command_outcome carry_out(const std::string& line, conversation& talk);

/// Returns the lines to which `begun`, the beginning of a command, can be completed. In each of
/// them the last word, a command or an argument, is complete. The result is empty when `begun` is
/// not the beginning of a command. `models` are the names that `/model` accepts.
std::vector<std::string> completions(std::string_view begun,
                                     const std::vector<std::string>& models);

} // namespace twill::tools
