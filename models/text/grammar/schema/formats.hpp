// formats: regular expressions of JSON Schema's `format` values.
//
// Enforced: date, time, date-time (RFC 3339 from year 1 on, with the days of each month and leap
// years), duration, email, hostname, ipv4, ipv6, uri, uri-reference, iri, iri-reference, uuid,
// json-pointer, relative-json-pointer, regex (that it is one is not checked). Others are
// annotations, as the standard has it. Pure; any thread.
#pragma once

#include <string>

namespace twill::models::grammar {

/// The anchored expression of a format; empty: the format is an annotation.
const std::string& format_pattern(const std::string& format);

} // namespace twill::models::grammar
