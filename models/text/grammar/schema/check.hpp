// check: checks that a text is a valid JSON Schema, for schemas that do not constrain an answer.
#pragma once

#include <optional>
#include <string_view>

#include "models/text/grammar/errc.hpp"

namespace twill::models::grammar {

/// Returns why the text is not a valid JSON Schema: it is not JSON (bad_json), or a keyword has an
/// impossible value (bad_schema). The failure's detail does not say which field of the request has
/// the schema; the caller adds that. Returns none for valid schemas, including those that twill
/// could not enforce. The time is proportional to the length of the text. The function is pure; any
/// thread may call it.
std::optional<failure> check_schema(std::string_view schema_text);

} // namespace twill::models::grammar
