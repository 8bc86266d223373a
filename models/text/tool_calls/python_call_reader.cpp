#include "models/text/tool_calls/python_call_reader.hpp"

#include <cstdio>
#include <utility>

namespace twill::models::tool_calls {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '+' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_number(const std::string& word) {
  std::size_t i = word.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const auto from = i;
    while (i < word.size() && word[i] >= '0' && word[i] <= '9')
      ++i;
    return i > from;
  };
  const auto first = i;
  if (!digits() || (word[first] == '0' && i > first + 1)) return false;
  if (i < word.size() && word[i] == '.') {
    ++i;
    if (!digits()) return false;
  }
  if (i < word.size() && (word[i] == 'e' || word[i] == 'E')) {
    ++i;
    if (i < word.size() && (word[i] == '+' || word[i] == '-')) ++i;
    if (!digits()) return false;
  }
  return i == word.size();
}

} // namespace

std::string python_call_reader::take_arguments() {
  return std::exchange(out_, {});
}

python_call_reader::status python_call_reader::push(char byte) {
  switch (state_) {
  case state::name_or_end:
    if (is_blank(byte)) return status::reading;
    if (byte == ')') {
      out_ += '}';
      state_ = state::ended;
      return status::done;
    }
    if (!is_word(byte)) return status::failed;
    word_ = byte;
    state_ = state::name;
    return status::reading;
  case state::name:
    if (is_word(byte)) {
      word_ += byte;
      return word_.size() > 256 ? status::failed : status::reading;
    }
    state_ = state::equals;
    return push(byte);
  case state::equals:
    if (is_blank(byte)) return status::reading;
    if (byte != '=') return status::failed;
    out_ += (any_ ? ", \"" : "\"") + word_ + "\": ";
    any_ = true;
    state_ = state::value;
    return status::reading;
  case state::value:
    return begin_value(byte);
  case state::string:
    if (byte == quote_) {
      out_ += '"';
      state_ = state::after_value;
    } else if (byte == '\\') {
      escape_.clear();
      state_ = state::escape;
    } else {
      put_string_byte(byte);
    }
    return status::reading;
  case state::escape:
    escape_ += byte;
    if (escape_[0] == 'u' || escape_[0] == 'x') {
      const std::size_t wanted = escape_[0] == 'u' ? 5 : 3;
      if (escape_.size() > 1 &&
          std::string_view("0123456789abcdefABCDEF").find(byte) == std::string_view::npos)
        return status::failed;
      if (escape_.size() < wanted) return status::reading;
      out_ += (wanted == 3 ? "\\u00" : "\\u") + escape_.substr(1);
    } else if (std::string_view("bfnrt\\\"").find(byte) != std::string_view::npos) {
      out_ += '\\';
      out_ += byte;
    } else if (byte == '\'' || byte == '/') { // JSON allows \/ in strings
      out_ += byte;
    } else if (byte != '\n') {
      out_ += "\\\\";
      put_string_byte(byte);
    }
    state_ = state::string;
    return status::reading;
  case state::word:
    if (is_word(byte)) {
      word_ += byte;
      return word_.size() > 256 ? status::failed : status::reading;
    }
    if (end_word() == status::failed) return status::failed;
    return push(byte);
  case state::after_value:
    return close(byte);
  case state::ended:
    return status::failed;
  }
  return status::failed;
}

void python_call_reader::put_string_byte(char byte) {
  char text[8];
  if (byte == '"') {
    out_ += "\\\"";
  } else if (static_cast<unsigned char>(byte) < 0x20) {
    std::snprintf(text, sizeof text, "\\u%04x", static_cast<unsigned>(byte));
    out_ += text;
  } else {
    out_ += byte;
  }
}

python_call_reader::status python_call_reader::begin_value(char byte) {
  if (is_blank(byte)) return status::reading;
  if (byte == '\'' || byte == '"') {
    quote_ = byte;
    out_ += '"';
    state_ = state::string;
  } else if (byte == '[' || byte == '{' || byte == '(') {
    open_.push_back(byte == '{' ? '}' : byte == '[' ? ']' : ')');
    out_ += byte == '{' ? '{' : '[';
  } else if (!open_.empty() && byte == open_.back()) {
    return close(byte);
  } else if (is_word(byte)) {
    word_ = byte;
    state_ = state::word;
  } else {
    return status::failed;
  }
  return status::reading;
}

python_call_reader::status python_call_reader::end_word() {
  state_ = state::after_value;
  if (word_ == "True" || word_ == "true")
    out_ += "true";
  else if (word_ == "False" || word_ == "false")
    out_ += "false";
  else if (word_ == "None" || word_ == "null")
    out_ += "null";
  else if (is_number(word_))
    out_ += word_;
  else
    return status::failed;
  return status::reading;
}

/// Handles a byte after a value: it must close a bracket or separate values.
python_call_reader::status python_call_reader::close(char byte) {
  if (is_blank(byte)) return status::reading;
  if (open_.empty()) {
    if (byte == ',') {
      state_ = state::name_or_end;
      return status::reading;
    }
    if (byte != ')') return status::failed;
    out_ += '}';
    state_ = state::ended;
    return status::done;
  }
  if (byte == open_.back()) {
    // Python allows a comma before the bracket, JSON does not.
    if (out_.ends_with(", ")) out_.resize(out_.size() - 2);
    out_ += byte == '}' ? '}' : ']';
    open_.pop_back();
    state_ = state::after_value;
    return status::reading;
  }
  if (byte == ':' && open_.back() == '}') {
    out_ += ": ";
    state_ = state::value;
    return status::reading;
  }
  if (byte != ',') return status::failed;
  out_ += ", ";
  state_ = state::value;
  return status::reading;
}

} // namespace twill::models::tool_calls
