// Names from files in messages: cut to a length, with what a terminal would act on made visible.
#pragma once

#include <string>
#include <string_view>

namespace twill::models {

/// "`name`"; at most 200 bytes of it, control characters as '?'.
inline std::string quoted_name(std::string_view name) {
  std::string text = "`";
  for (const char c : name.substr(0, 200))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text + "`";
}

} // namespace twill::models
