// oniguruma: translates the regular expressions of a tokenizer.json to PCRE2's syntax.
//
// The library that writes these files, Hugging Face tokenizers, compiles the expressions with
// Oniguruma 6.9, in its Ruby syntax and over UTF-8. Some constructs have another meaning in PCRE2:
// sets within sets, `\h`, `{,n}`, `\w`, `$`, `(?m)`. A construct without an exact counterpart is
// refused. The functions are pure; any thread may call them.
#pragma once

#include <string>
#include <string_view>

#include "models/errc.hpp"

namespace twill::models {

/// Returns a PCRE2 expression with the same matches, for regex::make_oniguruma(). It has no
/// capturing groups. Fails with unsupported, with the place and the reason, if Oniguruma would
/// refuse the expression or if twill knows no equivalent PCRE2 expression.
result<std::string> oniguruma_to_pcre2(std::string_view expression);

} // namespace twill::models
