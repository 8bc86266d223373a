// filters: Jinja's built-in filters, by name.
#pragma once

#include <string_view>

#include "models/text/jinja/evaluator.hpp"

namespace twill::models::jinja {

using filter_fn = val (*)(evaluator& ev, const val& input, const call_args& args);

/// The filter of that name; nullptr when there is none.
filter_fn find_filter(std::string_view name);
filter_fn find_text_filter(std::string_view name);
filter_fn find_sequence_filter(std::string_view name);
filter_fn find_selection_filter(std::string_view name);
filter_fn find_number_filter(std::string_view name);

} // namespace twill::models::jinja
