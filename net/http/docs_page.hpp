// The pages at "/routes" and "/docs": what can be asked of this server, in a list, and with the
// fields of each body. Made from the operations, without a script. Pure.
#pragma once

#include <string>

namespace twill::net {

std::string routes_page();
std::string docs_page();

} // namespace twill::net
