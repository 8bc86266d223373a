#include "models/text/tool_calls/json_call_reader.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace twill::models::tool_calls {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

void append_code_point(std::string& out, unsigned c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 63));
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

} // namespace

void json_call_reader::begin_arguments(std::string name) {
  name_ = std::move(name);
  has_name_ = has_arguments_ = arguments_begun_ = bare_value_ = true;
  target_ = target::arguments;
  state_ = state::value;
}

std::string json_call_reader::take_arguments() {
  return is_named() ? std::exchange(arguments_, {}) : std::string();
}

json_call_reader::status json_call_reader::push(char byte) {
  switch (state_) {
  case state::before:
    if (is_space(byte)) return status::reading;
    if (byte != '{') return status::failed;
    state_ = state::key_or_end;
    return status::reading;
  case state::key_or_end:
  case state::comma_key:
    if (is_space(byte)) return status::reading;
    if (byte == '}' && state_ == state::key_or_end) return finish_object();
    if (byte != '"') return status::failed;
    key_.clear();
    escaped_ = false;
    state_ = state::key;
    return status::reading;
  case state::key:
    if (byte == '"' && !escaped_) return on_key_end();
    escaped_ = byte == '\\' && !escaped_;
    key_ += byte;
    return key_.size() > 256 ? status::failed : status::reading;
  case state::colon:
    if (is_space(byte)) return status::reading;
    if (byte != ':') return status::failed;
    state_ = state::value;
    open_.clear();
    in_string_ = string_value_ = scalar_ = false;
    return status::reading;
  case state::value:
    return in_value(byte);
  case state::after_value:
    if (is_space(byte)) return status::reading;
    if (byte == ',') {
      state_ = state::comma_key;
      return status::reading;
    }
    return byte == '}' ? finish_object() : status::failed;
  case state::ended:
    return status::failed;
  }
  return status::failed;
}

json_call_reader::status json_call_reader::on_key_end() {
  state_ = state::colon;
  if (key_ == "name" || (key_ == "function" && nesting_ == 0)) {
    if (has_name_) return status::failed;
    target_ = key_ == "name" ? target::name : target::nested;
  } else if (key_ == "arguments" || key_ == "parameters") {
    if (has_arguments_) return status::failed;
    target_ = target::arguments;
  } else {
    target_ = target::skipped;
    if (only_calls_ && key_ != "type" && key_ != "id") return status::failed;
  }
  return status::reading;
}

/// Handles the first byte of a value.
json_call_reader::status json_call_reader::begin_value(char byte) {
  if (is_space(byte)) return status::reading;
  if (target_ == target::arguments) arguments_begun_ = true;
  if (byte == '{' && target_ == target::nested) {
    ++nesting_;
    state_ = state::key_or_end;
    return status::reading;
  }
  if (byte == '"') {
    in_string_ = string_value_ = true;
    if (target_ == target::nested) target_ = target::name;
    return status::reading;
  }
  if (target_ == target::name || target_ == target::nested) return status::failed;
  if (byte == '{' || byte == '[') {
    open_.push_back(byte == '{' ? '}' : ']');
  } else if (byte == '-' || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z')) {
    scalar_ = true;
  } else {
    return status::failed;
  }
  take_value_byte(byte);
  return status::reading;
}

json_call_reader::status json_call_reader::in_value(char byte) {
  if (open_.empty() && !in_string_ && !scalar_) return begin_value(byte);
  if (scalar_) {
    if (byte == '+' || byte == '-' || byte == '.' || (byte >= '0' && byte <= '9') ||
        (byte >= 'a' && byte <= 'z') || byte == 'E') {
      take_value_byte(byte);
      return status::reading;
    }
    // A number or a word ends only when a byte that does not belong to it is read.
    if (bare_value_ || end_value() == status::failed) return status::failed;
    return push(byte);
  }
  if (in_string_) {
    const bool outer = string_value_ && open_.empty();
    if (byte == '"' && !escaped_) {
      in_string_ = false;
      if (outer) return end_value();
      take_value_byte(byte);
      return status::reading;
    }
    escaped_ = byte == '\\' && !escaped_;
    if (static_cast<unsigned char>(byte) < 0x20) return status::failed;
    if (outer && target_ != target::skipped)
      decode(byte);
    else
      take_value_byte(byte);
    return name_.size() > 256 ? status::failed : status::reading;
  }
  take_value_byte(byte);
  if (byte == '"') {
    in_string_ = true;
    escaped_ = false;
  } else if (byte == '{' || byte == '[') {
    open_.push_back(byte == '{' ? '}' : ']');
  } else if (byte == '}' || byte == ']') {
    if (open_.back() != byte) return status::failed;
    open_.pop_back();
    if (open_.empty()) return end_value();
  }
  return status::reading;
}

void json_call_reader::take_value_byte(char byte) {
  if (target_ == target::arguments) arguments_ += byte;
}

/// Decodes a byte of a string that is the name, or the arguments as a JSON text.
void json_call_reader::decode(char byte) {
  std::string& out = target_ == target::name ? name_ : arguments_;
  if (escape_.empty()) {
    if (byte == '\\')
      escape_ = byte;
    else
      out += byte;
    return;
  }
  escape_ += byte;
  if (escape_[1] != 'u') {
    static constexpr const char* letters = "bfnrt";
    static constexpr const char* meant = "\b\f\n\r\t";
    const auto* at = std::strchr(letters, byte);
    out += at != nullptr ? meant[at - letters] : byte;
    escape_.clear();
    return;
  }
  if (escape_.size() < 6) return;
  const auto unit = static_cast<unsigned>(std::strtoul(escape_.c_str() + 2, nullptr, 16));
  escape_.clear();
  if (unit >= 0xd800 && unit < 0xdc00) {
    surrogate_ = unit;
  } else if (unit >= 0xdc00 && unit < 0xe000) {
    append_code_point(
        out, surrogate_ == 0 ? 0xfffd : 0x10000 + ((surrogate_ - 0xd800) << 10) + (unit - 0xdc00));
    surrogate_ = 0;
  } else {
    append_code_point(out, unit);
  }
}

json_call_reader::status json_call_reader::end_value() {
  state_ = state::after_value;
  escaped_ = false;
  if (bare_value_) {
    state_ = state::ended;
    return status::done;
  }
  if (target_ == target::arguments) has_arguments_ = true;
  if (target_ != target::name) return status::reading;
  if (name_.empty()) return status::failed;
  has_name_ = true;
  return status::reading;
}

json_call_reader::status json_call_reader::finish_object() {
  if (nesting_ > 0) {
    --nesting_;
    state_ = state::after_value;
    return status::reading;
  }
  state_ = state::ended;
  if (!has_name_ || (only_calls_ && !has_arguments_)) return status::failed;
  if (!has_arguments_) arguments_ = "{}";
  return status::done;
}

} // namespace twill::models::tool_calls
