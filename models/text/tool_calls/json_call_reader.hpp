// json_call_reader: reads one call that is written as a JSON object, byte by byte, and yields its
// name and then its arguments.
//
// Reads {"name": N, "arguments": A} and these variants: `parameters` instead of `arguments`,
// members in any order, {"type": "function", "function": {...}}, {"function": N, ...}, arguments as
// a JSON text in a string. Argument bytes are handed out as they come once the name is known. Each
// call has its own reader, which one thread uses.
#pragma once

#include <string>
#include <vector>

namespace twill::models::tool_calls {

class json_call_reader {
public:
  enum class status {
    reading,
    done,   ///< with this byte the object ended
    failed, ///< this byte cannot continue a call; argument bytes were handed out only if is_named()
  };

  /// With `only_calls`, reading fails as soon as the object has a member that calls never have.
  /// This is used for answers that are JSON without markers, which may be calls or other objects.
  explicit json_call_reader(bool only_calls) : only_calls_(only_calls) {}

  status push(char byte);
  const std::string& name() const { return name_; } ///< the part of the name read so far
  bool has_name() const { return has_name_; }       ///< the whole name has been read
  /// True once it is certain that the object is a call, and its function's name is known. With
  /// `only_calls` this also requires that the arguments have begun, because an answer in JSON that
  /// is not a call may have a member `name` too.
  bool is_named() const { return has_name_ && (!only_calls_ || arguments_begun_); }
  /// The argument bytes since the last call of take_arguments(); empty before is_named().
  std::string take_arguments();

  /// Starts reading a JSON value as the arguments of a call whose name stands before it, outside of
  /// the JSON, as Mistral models write it.
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
