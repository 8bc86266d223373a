// base64: RFC 4648 text to bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace twill::models {

/// Nothing when `text` is no base64; padding may be there.
std::optional<std::string> decode_base64(std::string_view text);

} // namespace twill::models
