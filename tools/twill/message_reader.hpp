// message_reader: reads the messages that a user types in a chat. A message is one line; several
// lines of which all but the last end in '\'; a block between two """; or pasted text. Only one
// thread may use it.
#pragma once

#include <optional>
#include <string>

#include "tools/twill/line_editor.hpp"

namespace twill::tools {

struct user_message {
  std::string text;     ///< not blank, without trailing spaces
  bool command = false; ///< whether it is a command for the client: a line typed in a terminal that
                        ///< begins with '/'
};

class message_reader {
public:
  explicit message_reader(line_editor& lines) : lines_(lines) {}

  /// Returns the next message, or nothing when the user ends the chat.
  std::optional<user_message> next();

private:
  enum class outcome { whole, abandoned, over };
  outcome read(user_message& message);
  outcome read_block(std::string& message);
  outcome read_continuation(std::string& message);

  line_editor& lines_;
};

} // namespace twill::tools
