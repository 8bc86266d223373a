// line_editor: reads lines that a user can edit in a terminal, with a history that is kept in a
// file. Pasted text becomes one line, even if it contains newlines. When standard input or output
// is no terminal, or is a dumb terminal, lines are read without editing.
//
// Only one thread may use it. No other module uses libedit. Call count_interrupts() (interrupt.hpp)
// before the constructor.
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
  abandoned, ///< Ctrl-C after some text was typed
  over,      ///< end of the input, Ctrl-C on an empty line, or a signal to end the program
};

struct line_read {
  line_read_kind kind = line_read_kind::line;
  std::string text;    ///< without its line end; only pasted text contains newlines
  bool pasted = false; ///< the line begins with pasted text
};

class line_editor {
public:
  /// Returns the lines that Tab offers as completions of `begun`, the beginning of a line.
  using completer = std::function<std::vector<std::string>(std::string_view begun)>;

  /// `history` is the file of the history, readable only by this user; an empty path keeps no
  /// history.
  line_editor(std::filesystem::path history, completer complete);
  ~line_editor();

  /// Reads the next line. `prompt` is shown only on terminals.
  line_read read(const std::string& prompt);
  /// Adds a line to the history and writes it to the history file at once.
  void remember(const std::string& line);

  /// Whether the lines come from a user at a terminal, even if that terminal cannot edit lines.
  bool at_terminal() const { return at_terminal_; }

private:
  class terminal;
  bool at_terminal_;
  std::unique_ptr<terminal> terminal_; ///< null: lines are read without editing
};

} // namespace twill::tools
