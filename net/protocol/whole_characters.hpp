// whole_characters: the bytes of tokens, which may be parts of characters, as texts of whole
// characters. Not thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace twill::net {

class whole_characters {
public:
  /// What is complete with these bytes; what may still become a character is kept for the next
  /// call. Bytes that can be none are given as they are.
  std::string push(std::string_view bytes);

  /// What was kept: at the end, no more bytes follow.
  std::string flush();

private:
  std::string kept_;
};

} // namespace twill::net
