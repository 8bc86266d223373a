// The members that a configuration table [models.KEY] may have, one row for each as in
// config/detail/keys.hpp. If the table [model] has a member of that name too, the row has the rule
// and description of that member.
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
