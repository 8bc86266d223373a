// request_log: the one line about a request that has ended. Pure; without a word of its prompt or
// its output.
#pragma once

#include <string>

#include "actors/port/request_summary.hpp"

namespace twill::actors {

/// The line for people: "request 7 ended: status=stop tenant=a ...".
std::string text_of(const request_summary& about);
/// The same as members of a JSON object, without braces. Times are in milliseconds.
std::string members_of(const request_summary& about);

/// Writes the line at level info.
void log_request(const request_summary& about);

} // namespace twill::actors
