// request_log: the log line about a request that has ended. The functions are pure. The line holds
// no text of the prompt or the output.
#pragma once

#include <string>

#include "actors/port/request_summary.hpp"

namespace twill::actors {

/// The line for people: "request 7 ended: status=stop tenant=a ...".
std::string text_of(const request_summary& about);
/// The content of the line as members of a JSON object, without braces. Times are in milliseconds.
std::string members_of(const request_summary& about);

/// Writes the line at level info.
void log_request(const request_summary& about);

} // namespace twill::actors
