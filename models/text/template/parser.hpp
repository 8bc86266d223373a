// parser: tokens into a tree, by Jinja2's grammar. Pure function; throws template_error.
//
// Not taken: extends, include, import, block (a chat template is one file), dynamic call arguments
// (*args), async and translation tags.
#pragma once

#include <string_view>

#include "models/text/template/ast.hpp"

namespace twill::models::jinja {

body parse_template(std::string_view source);

} // namespace twill::models::jinja
