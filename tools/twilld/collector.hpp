// post_to: sends trace spans to the collector that `tracing.endpoint` names.
#pragma once

#include "config/options.hpp"
#include "net/tracing/tracer.hpp"

namespace twill::tools {

/// Returns a function that posts OpenTelemetry spans of requests to the path /v1/traces below
/// `options.endpoint`, or to the endpoint itself when it already has this path. Throws
/// std::runtime_error when the endpoint is not a valid address. When the collector cannot be
/// reached, the returned function does not throw but returns the HTTP status 0.
net::tracer::post post_to(const config::tracing_options& options);

} // namespace twill::tools
