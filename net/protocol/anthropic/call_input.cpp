#include "net/protocol/anthropic/call_input.hpp"

#include <algorithm>

#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

constexpr std::size_t most_levels = 64;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

void skip_digits(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
}

/// True if `text` is a number in the syntax of RFC 8259.
bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  if (text.front() == '0')
    text.remove_prefix(1);
  else
    skip_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (text.empty() || !is_digit(text.front())) return false;
    skip_digits(text);
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (text.empty() || !is_digit(text.front())) return false;
    skip_digits(text);
  }
  return text.empty();
}

} // namespace

std::string call_input::push(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (state_ == state::broken || state_ == state::over) break;
    take(c, out);
  }
  handed_ += out.size();
  return out;
}

std::string call_input::closed(std::string_view handed_out) const {
  if (safe_ == 0) return "{}";
  std::string out(handed_out.substr(0, safe_));
  for (auto bracket = safe_open_.rbegin(); bracket != safe_open_.rend(); ++bracket)
    out += *bracket == '{' ? '}' : ']';
  return out;
}

void call_input::take(char c, std::string& out) {
  switch (state_) {
  case state::string:
    return take_string(c, out);
  case state::escape:
    return take_escape(c, out);
  case state::scalar:
    if (!is_space(c) && c != ',' && c != '}' && c != ']') {
      held_ += c;
      return;
    }
    end_scalar(out);
    if (state_ == state::after_value) take(c, out);
    return;
  default:
    break;
  }
  if (is_space(c)) {
    if (!open_.empty()) out += c;
    return;
  }
  switch (state_) {
  case state::first_value:
    if (c == ']') return take_after_value(c, out);
    return take_value(c, out);
  case state::value:
    return take_value(c, out);
  case state::first_key:
  case state::key:
    if (c == '}' && state_ == state::first_key) return take_after_value(c, out);
    if (c != '"') break;
    in_key_ = true;
    state_ = state::string;
    return void(out += '"');
  case state::colon:
    if (c != ':') break;
    state_ = state::value;
    return void(out += ':');
  case state::after_value:
    return take_after_value(c, out);
  default:
    break;
  }
  state_ = state::broken;
}

void call_input::take_value(char c, std::string& out) {
  if (c == '{') return open(c, out);
  if (open_.empty()) { // the arguments must be an object
    state_ = state::broken;
    return;
  }
  if (c == '[') return open(c, out);
  if (c == '"') {
    in_key_ = false;
    state_ = state::string;
    return void(out += '"');
  }
  held_ = c;
  state_ = state::scalar;
}

void call_input::take_string(char c, std::string& out) {
  if (c == '"') {
    out += '"';
    if (!in_key_) return end_value(out);
    state_ = state::colon;
    return;
  }
  if (c == '\\') {
    held_ = c;
    state_ = state::escape;
    return;
  }
  if (static_cast<unsigned char>(c) >= 0x20) return void(out += c);
  std::string quoted;
  append_json_string(quoted, {&c, 1});
  out += std::string_view(quoted).substr(1, quoted.size() - 2);
}

/// A character beyond U+FFFF is written as two `\u` escapes, a surrogate pair; the first escape is
/// held until the second is complete.
void call_input::take_escape(char c, std::string& out) {
  held_ += c;
  const auto at = (held_.size() - 1) % 6;
  const bool second = held_.size() > 6;
  bool fits = true;
  if (at == 0)
    fits = c == '\\';
  else if (at == 1)
    fits = second ? c == 'u' : std::string_view("\"\\/bfnrtu").find(c) != std::string_view::npos;
  else
    fits = is_hex_digit(c);
  if (!fits) {
    state_ = state::broken;
    return;
  }
  if (at == 1 && c != 'u') {
    out += held_;
    state_ = state::string;
    return;
  }
  if (at != 5) return;
  const auto is_surrogate = [&](std::size_t begin, std::string_view nibbles) {
    return (held_[begin] == 'd' || held_[begin] == 'D') &&
           nibbles.find(held_[begin + 1]) != std::string_view::npos;
  };
  constexpr std::string_view high = "89abAB", low = "cdefCDEF";
  if (!second && is_surrogate(2, high)) return; // the other half of the pair follows
  if (second ? !is_surrogate(8, low) : is_surrogate(2, low)) {
    state_ = state::broken; // half of a surrogate pair
    return;
  }
  out += held_;
  state_ = state::string;
}

void call_input::take_after_value(char c, std::string& out) {
  const bool in_object = open_.back() == '{';
  if (c == ',') {
    state_ = in_object ? state::key : state::value;
    return void(out += ',');
  }
  if (c != (in_object ? '}' : ']')) {
    state_ = state::broken;
    return;
  }
  open_.pop_back();
  out += c;
  end_value(out);
}

void call_input::end_scalar(std::string& out) {
  const bool fits = held_ == "true" || held_ == "false" || held_ == "null" || is_number(held_);
  if (!fits) {
    state_ = state::broken;
    return;
  }
  out += held_;
  end_value(out);
}

void call_input::open(char bracket, std::string& out) {
  if (open_.size() == most_levels) {
    state_ = state::broken;
    return;
  }
  open_ += bracket;
  out += bracket;
  state_ = bracket == '{' ? state::first_key : state::first_value;
  safe_ = handed_ + out.size();
  safe_open_ = open_;
}

void call_input::end_value(const std::string& out) {
  state_ = open_.empty() ? state::over : state::after_value;
  safe_ = handed_ + out.size();
  safe_open_ = open_;
}

} // namespace twill::net
