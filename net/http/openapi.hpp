// openapi_text: the routes for clients as an OpenAPI 3.1 document
// (https://spec.openapis.org/oas/v3.1.1), from the operations and the field tables. Pure; the same
// for every server of this version.
//
// "x-twill" of a property is "honoured", "no effect" or "refused". Paths that speak WebSocket have
// the reply to a plain GET, since OpenAPI has no words for more.
#pragma once

#include <string>

#include "net/http/operations.hpp"

namespace twill::net {

std::string openapi_text();

/// The statuses that an operation's replies may have, but for 405 and 101.
std::vector<int> statuses_of(const operation& described);

std::string_view word_of(field_use use);

} // namespace twill::net
