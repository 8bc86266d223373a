// text_argument: reads the text that is a command's argument; "-" stands for standard input.
#pragma once

#include <string>

namespace twill::tools {

/// Returns `given`, or all bytes of standard input when `given` is "-". Throws client_error when
/// the input is longer than 64 MiB or cannot be read.
std::string text_argument(const std::string& given);

} // namespace twill::tools
