// json_space: counts the white space at the end of a JSON text that is being generated.
//
// Used to bound the white space: JSON allows any amount of it between its parts, and a model may
// continue with it until its tokens are used up. White space inside strings does not count. A plain
// value.
#pragma once

#include <cstdint>
#include <string_view>

namespace twill::actors {

/// Enough for the line ends and indentation of deep objects.
inline constexpr std::int32_t most_json_space_bytes = 64;

class json_space {
public:
  void push(std::string_view bytes) {
    for (const char byte : bytes)
      push(byte);
  }
  bool is_enough() const { return !in_string_ && bytes_ >= most_json_space_bytes; }

private:
  void push(char byte) {
    if (in_string_) {
      if (byte == '"' && !escaped_) in_string_ = false;
      escaped_ = byte == '\\' && !escaped_;
    } else if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t') {
      ++bytes_;
    } else {
      bytes_ = 0;
      in_string_ = byte == '"';
    }
  }

  std::int32_t bytes_ = 0;
  bool in_string_ = false, escaped_ = false;
};

} // namespace twill::actors
