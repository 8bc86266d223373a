// parser: parses tokens into a tree by Jinja2's grammar. Pure; throws template_error.
//
// It refuses extends, include, import and block (a chat template is one file), dynamic call
// arguments (*args), async and translation tags.
#pragma once

#include <string_view>

#include "models/text/jinja/ast.hpp"

namespace twill::models::jinja {

body parse_template(std::string_view source);

} // namespace twill::models::jinja
