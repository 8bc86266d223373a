// json_writer: appends JSON text to a string without building a tree, because this code runs once
// per generated token.
//
// Only one thread at a time may use a json_writer. It holds only a reference to the string. Commas
// are inserted automatically. Calls must nest as JSON does; this is not checked. Ill-formed UTF-8
// becomes U+FFFD, so the output is always valid JSON; infinities and NaN become null.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/base/value.hpp"

namespace twill::net {

/// Appends `text` quoted and escaped.
void append_json_string(std::string& out, std::string_view text);

class json_writer {
public:
  explicit json_writer(std::string& out) : out_(out) {}

  json_writer& begin_object() { return open('{'); }
  json_writer& end_object() { return close('}'); }
  json_writer& begin_array() { return open('['); }
  json_writer& end_array() { return close(']'); }

  /// `name` must not contain characters that JSON escapes.
  json_writer& key(std::string_view name) {
    comma();
    out_ += '"';
    out_ += name;
    out_ += "\":";
    need_comma_ = false;
    return *this;
  }

  json_writer& add(std::string_view text) {
    comma();
    append_json_string(out_, text);
    return *this;
  }
  json_writer& add(const char* text) { return add(std::string_view(text)); }
  json_writer& add(const std::string& text) { return add(std::string_view(text)); }
  json_writer& add(std::same_as<bool> auto flag) { return raw(flag ? "true" : "false"); }
  json_writer& add(std::nullptr_t) { return raw("null"); }
  json_writer& add(double number);
  json_writer& add(float number);
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) json_writer& add(Integer number) {
    return add_integer(static_cast<std::int64_t>(number));
  }
  json_writer& add(const value& tree);

  template <class Value>
  json_writer& field(std::string_view name, const Value& v) {
    return key(name).add(v);
  }

  /// Appends text that is valid JSON already.
  json_writer& raw(std::string_view json) {
    comma();
    out_ += json;
    return *this;
  }

private:
  json_writer& open(char bracket) {
    comma();
    out_ += bracket;
    need_comma_ = false;
    return *this;
  }
  json_writer& close(char bracket) {
    out_ += bracket;
    need_comma_ = true;
    return *this;
  }
  void comma() {
    if (need_comma_) out_ += ',';
    need_comma_ = true;
  }
  json_writer& add_integer(std::int64_t number);

  std::string& out_;
  bool need_comma_ = false;
};

/// The JSON text of a tree.
std::string json_text(const value& tree);

/// The JSON text of a tree, cut to `max_chars` with "..." if it is longer; used in error messages.
std::string describe(const value& tree, std::size_t max_chars = 60);

} // namespace twill::net
