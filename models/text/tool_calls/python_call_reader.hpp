// python_call_reader: translates ChatGLM3's calls, such as tool_call(city='Beijing', days=3), to
// JSON arguments, byte by byte.
//
// Values are Python literals: strings, numbers, True, False, None, lists, dicts. Each call has its
// own reader, which one thread uses.
#pragma once

#include <string>
#include <vector>

namespace twill::models::tool_calls {

class python_call_reader {
public:
  enum class status { reading, done, failed };

  /// Takes the next byte after "tool_call(".
  status push(char byte);
  /// The JSON bytes since the last call of take_arguments().
  std::string take_arguments();

private:
  enum class state { name_or_end, name, equals, value, string, escape, word, after_value, ended };
  status begin_value(char byte);
  status end_word();
  status close(char byte);
  void put_string_byte(char byte);

  state state_ = state::name_or_end;
  std::vector<char> open_; ///< brackets open inside a value
  std::string word_;
  char quote_ = 0;
  bool any_ = false;
  std::string out_ = "{";
  std::string escape_;
};

} // namespace twill::models::tool_calls
