// line_editor: reads lines from a terminal that can be edited, with a history that outlives the
// program. What is pasted is one line, whatever it holds. Where standard input or output is no
// terminal, or a dumb one, it reads plain lines.
//
// One thread. Only this module uses libedit. Call count_interrupts() (interrupt.hpp) before the
// editor is made.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace twill::tools {

enum class line_read_kind {
  line,
  abandoned, ///< Ctrl-C, behind some text
  over,      ///< the end of the input, Ctrl-C in an empty line, or a signal to end
};

struct line_read {
  line_read_kind kind = line_read_kind::line;
  std::string text;    ///< without its end; only what was pasted has newlines
  bool pasted = false; ///< it begins with what was pasted
};

class line_editor {
public:
  /// What may stand in place of a line that begins like this, for Tab.
  using completer = std::function<std::vector<std::string>(std::string_view begun)>;

  /// `history` keeps the lines, for this user alone; an empty path keeps none.
  line_editor(std::filesystem::path history, completer complete);
  ~line_editor();

  /// The next line. `prompt` is shown on terminals.
  line_read read(const std::string& prompt);
  /// Adds a line to the history, and to its file at once.
  void remember(const std::string& line);

  /// Whether a user types and sees the lines, also where they cannot be edited.
  bool at_terminal() const { return at_terminal_; }

private:
  class terminal;
  bool at_terminal_;
  std::unique_ptr<terminal> terminal_; ///< null: plain lines
};

} // namespace twill::tools
