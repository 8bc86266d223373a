// The HTML pages "/routes", a list of all routes, and "/docs", which also lists the fields of each
// request body. The pages are generated from the table of net/http/operations.hpp and need no
// script. The functions are pure.
#pragma once

#include <string>

namespace twill::net {

std::string routes_page();
std::string docs_page();

} // namespace twill::net
