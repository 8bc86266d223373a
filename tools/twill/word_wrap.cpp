#include "tools/twill/word_wrap.hpp"

#include <algorithm>
#include <cwchar>
#include <utility>

namespace twill::tools {
namespace {

constexpr std::size_t tab_stop = 8;
constexpr std::size_t code_indent = 4;      ///< CommonMark 4.4
constexpr std::size_t shortest_fence = 3;   ///< CommonMark 4.5
constexpr std::size_t most_of_fence = 1024; ///< bytes of a line that are compared with the fence
constexpr char32_t zero_width_joiner = 0x200d, emoji_selector = 0xfe0f;

std::size_t length_of_character(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/// The first character of `text`, which may be incomplete.
std::string_view first_character(std::string_view text) {
  std::size_t length = 1;
  while (length < std::min(text.size(), length_of_character(text[0])) && continues(text[length]))
    ++length;
  return text.substr(0, length);
}

char32_t point_of(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  char32_t point = byte(0) & (0x7fU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i)
    point = (point << 6) | (byte(i) & 0x3fU);
  return point;
}

char32_t last_point_of(std::string_view text) {
  if (text.empty()) return 0;
  auto begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && continues(text[begin]))
    --begin;
  return point_of(first_character(text.substr(begin)));
}

std::size_t width_of(char32_t point) {
  const int width = ::wcwidth(static_cast<wchar_t>(point));
  if (width >= 0) return static_cast<std::size_t>(width);
  // Emoji that are missing in the C library's tables because they are newer.
  return point >= 0x1f000 && point <= 0x1faff ? 2 : 1;
}

bool is_hangul(char32_t point) {
  return (point >= 0x1100 && point <= 0x11ff) || (point >= 0xac00 && point <= 0xd7a3);
}

/// Whether no line may begin with the character, because it closes or modifies the one before it.
bool belongs_to_the_left(char32_t point) {
  static constexpr std::u32string_view closing =
      U"、。，．！？：；」』】）］｝〉》〕〗～…ーっッゃゅょャュョ々ヽヾゝゞ";
  return closing.find(point) != closing.npos || (point >= 0x1f3fb && point <= 0x1f3ff);
}

/// Whether no line may end with the character, because it opens something or joins to the next one.
bool belongs_to_the_right(char32_t point) {
  static constexpr std::u32string_view opening = U"「『【（［｛〈《〔〖([{\"'";
  return opening.find(point) != opening.npos || point == zero_width_joiner;
}

/// Whether a line may be broken between two characters that are not spaces. That is allowed next to
/// the wide characters of scripts that have no spaces, but not of Korean, which has spaces.
bool breaks_between(char32_t left, char32_t right) {
  if (left == 0 || belongs_to_the_right(left) || belongs_to_the_left(right)) return false;
  const bool alphanumeric = (right >= 'a' && right <= 'z') || (right >= 'A' && right <= 'Z') ||
                            (right >= '0' && right <= '9');
  if (width_of(right) == 2) return !is_hangul(right);
  return alphanumeric && width_of(left) == 2 && !is_hangul(left);
}

/// The column of the cursor after `spaces`, which may contain tabs, are shown from `column` on.
std::size_t column_after(std::size_t column, std::string_view spaces) {
  for (const char space : spaces)
    column = space == '\t' ? (column / tab_stop + 1) * tab_stop : column + 1;
  return column;
}

/// Whether the word is a list marker: "-", "*", "+", "1." or "1)" (CommonMark 5.2).
bool marks_item(std::string_view word) {
  if (word == "-" || word == "*" || word == "+") return true;
  const auto digits = word.find_first_not_of("0123456789");
  return digits != word.npos && digits > 0 && digits <= 9 && digits + 1 == word.size() &&
         (word.back() == '.' || word.back() == ')');
}

} // namespace

std::string word_wrap::add(std::string_view text, std::size_t columns) {
  columns_ = columns;
  for (const char byte : text) {
    if (!part_.empty() && !continues(byte)) take(std::exchange(part_, {})); // an invalid character
    part_ += byte;
    if (part_.size() == length_of_character(part_.front())) take(std::exchange(part_, {}));
  }
  return std::exchange(out_, {});
}

std::string word_wrap::end() {
  if (!part_.empty()) take(part_);
  place_word();
  std::string rest = std::exchange(out_, {});
  *this = {};
  return rest;
}

void word_wrap::take(std::string_view character) {
  if (mode_ == mode::line_begin) begin_line(character);
  if (character == "\n") return end_line();
  if (mode_ == mode::raw) return take_raw(character);
  take_in_text(character);
}

/// Decides at the first non-space character of a line whether the line is wrapped or shown
/// unchanged.
void word_wrap::begin_line(std::string_view character) {
  if (columns_ == 0 || fence_ != 0) {
    mode_ = mode::raw;
    return;
  }
  const char first = character.front();
  if (first == ' ' || first == '\t' || first == '\n') return;
  indent_ = column_after(0, spaces_);
  const bool code = after_blank_ && !in_list_ && indent_ >= code_indent;
  mode_ = code || first == '|' ? mode::raw : mode::text;
  if (mode_ == mode::raw) put(std::exchange(spaces_, {}), indent_);
  after_blank_ = code;
}

void word_wrap::take_raw(std::string_view character) {
  put(character, width_of(point_of(character)));
  if (fence_opens_) {
    // If another backtick follows later in the line, the backticks at its beginning were those of
    // an inline code span and not a fence.
    if (fence_ == '`' && character == "`") fence_ = 0;
  } else if (fence_ != 0 && fenced_line_.size() < most_of_fence) {
    fenced_line_ += character;
  }
}

void word_wrap::take_in_text(std::string_view character) {
  if (character == " " || character == "\t") {
    place_word();
    if (mode_ == mode::raw) return take_raw(character); // the word was a code fence
    spaces_ += character;
    return;
  }
  const auto point = point_of(character);
  const auto left = last_point_of(word_);
  if (breaks_between(left, point)) place_word();
  if (mode_ == mode::raw) return take_raw(character);
  const bool widens = point == emoji_selector && width_of(left) == 1;
  word_ += character;
  word_width_ += widens ? 1 : width_of(point);
  if (in_long_word_ || word_width_ > columns_) place_long_word();
}

void word_wrap::end_line() {
  place_word();
  if (mode_ == mode::line_begin) after_blank_ = true;
  if (fence_ != 0 && !fence_opens_) {
    const auto begin = fenced_line_.find_first_not_of(" \t");
    const auto end = fenced_line_.find_last_not_of(" \t");
    const auto rest =
        begin == fenced_line_.npos ? std::string() : fenced_line_.substr(begin, end - begin + 1);
    if (rest.size() >= fence_length_ && rest.find_first_not_of(fence_) == rest.npos) {
      fence_ = 0;
      after_blank_ = true;
    }
  }
  fenced_line_.clear();
  fence_opens_ = false;
  spaces_.clear();
  in_long_word_ = item_begins_ = false;
  words_ = indent_ = 0;
  mode_ = mode::line_begin;
  out_ += '\n';
  column_ = 0;
  line_is_empty_ = true;
}

/// Shows the word that was held back, on the current line or a new one.
void word_wrap::place_word() {
  in_long_word_ = false;
  if (word_.empty()) return;
  if (open_fence()) return;
  if (words_ == 0) {
    item_begins_ = marks_item(word_);
    if (item_begins_)
      in_list_ = true;
    else if (indent_ == 0)
      in_list_ = false;
  }
  const auto begin = column_after(column_, spaces_);
  if (words_ == 1 && item_begins_) indent_ = begin;
  ++words_;
  if (begin + word_width_ > columns_ && !line_is_empty_)
    break_line();
  else
    put(spaces_, begin - column_);
  spaces_.clear();
  put(word_, word_width_);
  line_is_empty_ = false;
  word_.clear();
  word_width_ = 0;
}

/// Shows the available part of a word that is longer than a line, on as many lines as needed.
void word_wrap::place_long_word() {
  if (!in_long_word_) {
    if (open_fence()) return;
    ++words_;
    if (!line_is_empty_)
      break_line();
    else
      put(spaces_, column_after(column_, spaces_) - column_);
    spaces_.clear();
    in_long_word_ = true;
  }
  for (std::size_t i = 0; i < word_.size();) {
    const auto character = first_character(std::string_view(word_).substr(i));
    const auto width = width_of(point_of(character));
    if (column_ + width > columns_ && !line_is_empty_) break_line();
    put(character, width);
    line_is_empty_ = false;
    i += character.size();
  }
  word_.clear();
  word_width_ = 0;
}

/// Whether `word_` opens a fenced code block. Only the first word of a line or list item can do so.
/// A word that opens a block is written to the output at once.
bool word_wrap::open_fence() {
  const char first = word_.front();
  if ((first != '`' && first != '~') || words_ > (item_begins_ ? 1U : 0U)) return false;
  const auto length = std::min(word_.find_first_not_of(first), word_.size());
  if (length < shortest_fence || (first == '`' && word_.find('`', length) != word_.npos))
    return false;
  fence_ = first;
  fence_length_ = length;
  fence_opens_ = true;
  mode_ = mode::raw;
  put(spaces_, column_after(column_, spaces_) - column_);
  spaces_.clear();
  put(std::exchange(word_, {}), std::exchange(word_width_, 0));
  return true;
}

void word_wrap::break_line() {
  out_ += '\n';
  column_ = 0;
  line_is_empty_ = true;
  const auto indent = std::min(indent_, columns_ / 2);
  put(std::string(indent, ' '), indent);
}

void word_wrap::put(std::string_view text, std::size_t width) {
  out_ += text;
  column_ += width;
}

std::string wrapped(std::string_view text, std::size_t columns) {
  word_wrap wrap;
  std::string out = wrap.add(text, columns);
  return out + wrap.end();
}

} // namespace twill::tools
