// oniguruma: the regular expressions of a tokenizer.json, written again for PCRE2.
//
// The library that writes these files compiles them with Oniguruma 6.9, in its Ruby syntax and over
// UTF-8. The same letters often mean something else to PCRE2: sets within sets, `\h`, `{,n}`,
// `\w`, `$`, `(?m)`. What has no exact counterpart is refused. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "models/errc.hpp"

namespace twill::models {

/// The expression of PCRE2, for regex::make_exact(), with the same matches; it has no groups that
/// capture. Fails with unsupported, with the place and the reason, where Oniguruma would refuse the
/// expression, and where twill knows no expression that matches the same.
result<std::string> oniguruma_to_pcre2(std::string_view expression);

} // namespace twill::models
