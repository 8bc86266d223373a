// post_to: sends trace spans to the collector that `tracing.endpoint` names.
#pragma once

#include "config/options.hpp"
#include "net/tracing/tracer.hpp"

namespace twill::tools {

/// Spans are posted to the path /v1/traces below the endpoint, or to the endpoint itself when its
/// path already is that. Throws std::runtime_error when the endpoint is not a valid address. When
/// the collector cannot be reached, a later post reports status 0.
net::tracer::post post_to(const config::tracing_options& options);

} // namespace twill::tools
