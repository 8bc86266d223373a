// formats: regular expressions for the values of JSON Schema's `format` keyword.
//
// Enforced: date, time, date-time (RFC 3339 from year 1 on, with the days of each month and leap
// years), duration, email, hostname, ipv4, ipv6, uri, uri-reference, iri, iri-reference, uuid,
// json-pointer, relative-json-pointer, regex (only syntax that ECMA-262 and Python share). Other
// formats are annotations without effect, as the standard allows. The functions are pure; any
// thread may call them.
#pragma once

#include <string>

namespace twill::models::grammar {

/// The anchored regular expression of a format; empty if the format is only an annotation.
const std::string& format_pattern(const std::string& format);

} // namespace twill::models::grammar
