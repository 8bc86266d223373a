// The table of the members of one [models.KEY] table, in the form of the table of
// config/detail/keys.hpp. Members that [model] has as well use the rules and descriptions of
// [model].
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/detail/keys.hpp"

namespace twill::config::detail {

using model_key = basic_key<shared_model_options>;

/// In the order they are printed; each is named "models.MEMBER".
std::span<const model_key> model_keys();

/// What a table of [models] may be called. The words complete the sentence "KEY must be ...".
bool is_model_key(std::string_view text);
std::string model_key_words();

} // namespace twill::config::detail
