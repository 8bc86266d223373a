// json_call_reader: one call written as a JSON object, byte by byte: its name, then its arguments.
//
// Reads {"name": N, "arguments": A} and its variants: `parameters` for `arguments`, members in any
// order,
// {"type": "function", "function": {...}}, {"function": N, ...}, arguments as a JSON text in a
// string. Argument bytes are handed out as they come once the name is known. One per call, one
// thread.
#pragma once

#include <string>
#include <vector>

namespace twill::models::tool_calls {

class json_call_reader {
public:
  enum class status {
    reading,
    done,   ///< with this byte the object ended
    failed, ///< this byte cannot go on a call; nothing was handed out unless the name was known
  };

  /// `only_calls`: an object with other members than a call's fails at once (bare JSON).
  explicit json_call_reader(bool only_calls) : only_calls_(only_calls) {}

  status push(char byte);
  const std::string& name() const { return name_; } ///< as much of it as stands yet
  bool has_name() const { return has_name_; }       ///< the whole name stands
  /// True once it is certain that this is a call, and of what: with `only_calls`, once its
  /// arguments have begun as well, since an answer in JSON may have a `name` too.
  bool is_named() const { return has_name_ && (!only_calls_ || arguments_begun_); }
  /// Argument bytes since the last call of take_arguments(); none before is_named().
  std::string take_arguments();

  /// Reads a bare JSON value as the arguments of a call that is named already (Mistral).
  void begin_arguments(std::string name);

private:
  enum class state { before, key_or_end, key, colon, value, after_value, comma_key, ended };
  enum class target { skipped, name, arguments, nested };

  status on_key_end();
  status begin_value(char byte);
  status in_value(char byte);
  status end_value();
  status finish_object();
  void take_value_byte(char byte);
  void decode(char byte);

  bool only_calls_;
  state state_ = state::before;
  int nesting_ = 0; ///< 1 inside {"function": {...}}
  std::string key_;
  bool escaped_ = false;
  target target_ = target::skipped;
  std::vector<char> open_; ///< brackets open inside the value
  bool in_string_ = false;
  bool string_value_ = false; ///< the value is a string
  bool scalar_ = false;       ///< the value is a number or a word
  std::string escape_;        ///< an unfinished escape sequence of a decoded string
  unsigned surrogate_ = 0;
  std::string name_, arguments_;
  bool has_name_ = false, has_arguments_ = false, arguments_begun_ = false;
  bool bare_value_ = false;
};

} // namespace twill::models::tool_calls
