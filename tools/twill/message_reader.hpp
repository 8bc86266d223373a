// message_reader: what a user says, line by line: a line, lines that end in '\' with the next one,
// a block between two """, or what was pasted. One thread.
#pragma once

#include <optional>
#include <string>

#include "tools/twill/line_editor.hpp"

namespace twill::tools {

struct user_message {
  std::string text;     ///< not blank, without spaces at its end
  bool command = false; ///< it speaks to the client: a line of a terminal that begins with '/'
};

class message_reader {
public:
  explicit message_reader(line_editor& lines) : lines_(lines) {}

  /// The next message; nothing when the user leaves.
  std::optional<user_message> next();

private:
  enum class outcome { whole, abandoned, over };
  outcome read(user_message& message);
  outcome read_block(std::string& message);
  outcome read_continuation(std::string& message);

  line_editor& lines_;
};

} // namespace twill::tools
