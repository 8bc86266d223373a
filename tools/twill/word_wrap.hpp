// word_wrap: breaks text between words at the width of a terminal, while the text comes in pieces.
//
// Lines of Markdown's code blocks, fenced or indented, and of tables stay as they are; the lines of
// a list's item are indented as its text is. Widths are those of the locale's wcwidth(), so
// LC_CTYPE has to know UTF-8. Text must have no control characters but newline and tab: see
// printable(). How it was cut into pieces does not change what comes out. A plain value; no errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twill::tools {

class word_wrap {
public:
  /// What can be shown now of the text so far, on a terminal `columns` wide; 0: nothing is broken.
  /// The last word is kept back until it has ended.
  std::string add(std::string_view text, std::size_t columns);
  /// The rest. The next text begins anew.
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
  std::string part_;   ///< bytes of a character that is not whole yet
  std::string spaces_; ///< between what is shown and the word
  std::string word_;   ///< kept back
  std::size_t word_width_ = 0;
  std::size_t column_ = 0;    ///< where the next character is shown
  std::size_t indent_ = 0;    ///< of the lines that breaks begin
  bool line_is_empty_ = true; ///< what is shown of the line is its indentation at most
  bool in_long_word_ = false; ///< the word is longer than a line, and is shown as it comes
  std::size_t words_ = 0;     ///< of the text's line
  bool item_begins_ = false;  ///< the first of these is a list's marker
  bool in_list_ = false;      ///< indented lines belong to an item
  bool after_blank_ = true;   ///< what is indented now would be code
  mode mode_ = mode::line_begin;
  char fence_ = 0; ///< 0: no fenced block is open
  std::size_t fence_length_ = 0;
  bool fence_opens_ = false; ///< in this line
  std::string fenced_line_;  ///< its beginning, which may be the closing fence
};

/// `text` as lines of at most `columns`.
std::string wrapped(std::string_view text, std::size_t columns);

} // namespace twill::tools
