// post_to: the way of spans to the collector that `tracing.endpoint` names.
#pragma once

#include "config/options.hpp"
#include "net/tracing/tracer.hpp"

namespace twill::tools {

/// Spans go to /v1/traces below the endpoint, unless that is its path already. An endpoint that is
/// no address throws std::runtime_error now; a collector that cannot be reached gives status 0
/// later.
net::tracer::post post_to(const config::tracing_options& options);

} // namespace twill::tools
