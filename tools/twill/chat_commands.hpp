// chat_commands: the lines of `twill chat` that begin with '/' and speak to the client.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/twill/conversation.hpp"

namespace twill::tools {

struct command_outcome {
  std::string note; ///< for the user; may have several lines
  bool leave = false;
};

/// Carries out `line`, which begins with '/'. What goes wrong is told in the note.
command_outcome carry_out(const std::string& line, conversation& talk);

/// The lines that `begun`, the beginning of such a line, may become: with a whole command or
/// argument. None where it is no such line. `models` are the names for `/model`.
std::vector<std::string> completions(std::string_view begun,
                                     const std::vector<std::string>& models);

} // namespace twill::tools
