// word_wrap: breaks text between words at the width of a terminal, while the text arrives piece by
// piece.
//
// The text is Markdown. Lines of code blocks (fenced or indented) and of tables are not broken; the
// continuation lines of a list item are indented like the item's text. Character widths come from
// wcwidth(), so the locale's LC_CTYPE must be a UTF-8 one. The text must contain no control
// characters except newline and tab; printable() ensures that. The output does not depend on where
// the text was split into pieces. An object is a plain value, and its calls cannot fail.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twill::tools {

class word_wrap {
public:
  /// Adds a piece of text and returns what can be shown now, on a terminal `columns` wide (0: lines
  /// are not broken). The last word is held back until it is complete.
  std::string add(std::string_view text, std::size_t columns);
  /// Returns the text that was held back. The next call of add() starts a new text.
  std::string end();

private:
  enum class mode { line_begin, text, raw };

  void take(std::string_view character);
  void begin_line(std::string_view character);
  void take_raw(std::string_view character);
  void take_in_text(std::string_view character);
  void end_line();
  void place_word();
  void place_long_word();
  bool open_fence();
  void break_line();
  void put(std::string_view text, std::size_t width);

  std::size_t columns_ = 0;
  std::string out_;
  std::string part_;   ///< the first bytes of an incomplete character
  std::string spaces_; ///< the spaces between the shown text and `word_`
  std::string word_;   ///< the word that is held back
  std::size_t word_width_ = 0;
  std::size_t column_ = 0;    ///< column at which the next character will be shown
  std::size_t indent_ = 0;    ///< indentation of the lines that a line break begins
  bool line_is_empty_ = true; ///< the shown line has nothing but its indentation
  bool in_long_word_ = false; ///< `word_` is longer than a line, so it is shown as it arrives
  std::size_t words_ = 0;     ///< words so far in the current line of the input
  bool item_begins_ = false;  ///< the first of the line's words is a list marker
  bool in_list_ = false;      ///< indented lines belong to a list item
  bool after_blank_ = true;   ///< the next line is code if it is indented
  mode mode_ = mode::line_begin;
  char fence_ = 0; ///< the character of the open code fence; 0: no fenced block is open
  std::size_t fence_length_ = 0;
  bool fence_opens_ = false; ///< the current line is the opening fence
  std::string fenced_line_;  ///< beginning of a line in a fenced block, kept because it may be the
                             ///< closing fence
};

/// Returns `text` broken into lines of at most `columns` columns.
std::string wrapped(std::string_view text, std::size_t columns);

} // namespace twill::tools
