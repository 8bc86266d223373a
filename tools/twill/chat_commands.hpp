// chat_commands: the lines of `twill chat` that begin with '/' and speak to the client.
#pragma once

#include <string>

#include "tools/twill/conversation.hpp"

namespace twill::tools {

struct command_outcome {
  std::string note; ///< for the user; may have several lines
  bool leave = false;
};

/// Carries out `line`, which begins with '/'. What goes wrong is told in the note.
command_outcome carry_out(const std::string& line, conversation& talk);

} // namespace twill::tools
