// text_argument: the text of a command that takes one, which may be "-" for standard input.
#pragma once

#include <string>

namespace twill::tools {

/// `given`, or all of standard input, byte by byte, when that is "-". Throws client_error beyond
/// 64 MiB and when the input cannot be read.
std::string text_argument(const std::string& given);

} // namespace twill::tools
