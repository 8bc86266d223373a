// openapi_text: describes the routes for clients as an OpenAPI 3.1 document
// (https://spec.openapis.org/oas/v3.1.1), generated from the table of net/http/operations.hpp and
// the field tables of net/protocol/field_table.hpp. The functions are pure; the document depends
// only on the version of twill.
//
// The member "x-twill" of a property is "honoured", "no effect" or "refused". A WebSocket route is
// described by its reply to a plain GET, because OpenAPI cannot describe WebSocket.
#pragma once

#include <string>

#include "net/http/operations.hpp"

namespace twill::net {

std::string openapi_text();

/// The HTTP statuses that replies of an operation may have, except 405 and 101.
std::vector<int> statuses_of(const operation& described);

std::string_view word_of(field_use use);

} // namespace twill::net
