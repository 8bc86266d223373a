// quoted_name: names from files, made safe for messages. The functions are pure.
#pragma once

#include <string>
#include <string_view>

namespace twill::models {

/// "`name`", cut to 200 bytes, with '?' for control characters, on which a terminal would act.
inline std::string quoted_name(std::string_view name) {
  std::string text = "`";
  for (const char c : name.substr(0, 200))
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text + "`";
}

} // namespace twill::models
