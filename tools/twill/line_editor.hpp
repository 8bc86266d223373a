// line_editor: reads lines from a terminal that can be edited, with a history that outlives the
// program. Where standard input or output is no terminal, or a dumb one, it reads plain lines.
//
// One thread. It is the only file that knows libedit.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace twill::tools {

class line_editor {
public:
  /// `history` keeps the lines, for this user alone; an empty path keeps none. `prompt` is shown on
  /// terminals.
  line_editor(std::filesystem::path history, std::string prompt);
  ~line_editor();

  /// The next line without its end; nothing at the end of the input and after an interrupt.
  std::optional<std::string> read();

  /// Whether a user types and sees the lines, also where they cannot be edited.
  bool at_terminal() const { return at_terminal_; }

private:
  class terminal;
  bool at_terminal_;
  std::string prompt_;
  std::unique_ptr<terminal> terminal_; ///< null: plain lines
};

} // namespace twill::tools
