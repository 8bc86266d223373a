// tests: Jinja's built-in tests (`x is name`), by name.
#pragma once

#include <string_view>

#include "models/text/jinja/evaluator.hpp"

namespace twill::models::jinja {

using test_fn = bool (*)(evaluator& ev, const val& input, const call_args& args);

/// The test of that name; nullptr when there is none.
test_fn find_test(std::string_view name);

} // namespace twill::models::jinja
