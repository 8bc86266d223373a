// request_checks: refuses what a request must not ask for, before its prompt is encoded.
//
// Pure functions, which any thread may call.
#pragma once

#include <optional>
#include <string>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// The error with the field that a detail of the form "`field` must be ..." names.
request_error to_request_error(errc code, std::string detail);

/// Checks the name of the model, the sampling parameters against `limits`, and the options of the
/// request that can be checked without its encoded prompt. Returns an error for the first value
/// that is not allowed, or nullopt.
std::optional<request_error> check_request(const request& asked, const served_model& model,
                                           const config::limit_options& limits);

} // namespace twill::actors
