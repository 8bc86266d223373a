// whole_characters: converts the bytes of tokens, which may end within a UTF-8 character, to texts
// that contain only whole characters. Not thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace twill::net {

class whole_characters {
public:
  /// Adds `bytes` and returns the text up to the last complete character. Bytes that may still
  /// become a character are kept for the next call. Bytes that cannot be part of any character are
  /// returned unchanged.
  std::string push(std::string_view bytes);

  /// Returns the bytes that push() has kept. Called at the end, when no more bytes follow.
  std::string flush();

private:
  std::string kept_;
};

} // namespace twill::net
