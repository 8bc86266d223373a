// router: which path and method is answered how. Sans-IO: a request in, an answer out.
//
// Called on session strands; touches only the context, which is thread-safe.
#pragma once

#include <string_view>

#include "net/http/http_types.hpp"
#include "net/server_context.hpp"

namespace twill::net {

http_answer route(http_request request, server_context& context);

/// The paths that are WebSocket end points.
enum class websocket_path { none, responses, stream };
websocket_path find_websocket_path(std::string_view path);

/// The model that a body's `model` names; without one, the only model.
result<actors::model_info> find_model(const actors::engine_port& engine, const value& body);

} // namespace twill::net
