// check: whether a text is a JSON Schema at all, for schemas that nothing is constrained by.
#pragma once

#include <optional>
#include <string_view>

#include "models/text/grammar/errc.hpp"

namespace twill::models::grammar {

/// Why the text is no valid JSON Schema, as a sentence without a subject's field: it is not JSON,
/// or a keyword has an impossible value (bad_json, bad_schema). Nothing for valid schemas, also
/// those that twill would not enforce. Takes time in proportion to the text. Pure; any thread.
std::optional<failure> check_schema(std::string_view schema_text);

} // namespace twill::models::grammar
