// worker_routes: the routes by which a router in front of several daemons asks each daemon what it
// serves and how busy it is. Handlers run on the strand of the client's connection.
//
// The routes and members are those that the routers of vLLM and SGLang read: vllm-router and
// production-stack use /get_server_info, /load and /is_sleeping; sglang-router uses /server_info,
// /model_info and /get_load. Replies contain the served name of a model, never its path. The routes
// need no API key, like /metrics, which contains the same information.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

/// {"server_load": number of requests that run or wait}
http_answer load(request_scope& scope);
/// Returns a list with one object, because a daemon is one data-parallel rank: its number of
/// requests, how many of them wait, and the number of tokens in the KV blocks in use.
http_answer load_of_ranks(request_scope& scope);
/// {"is_sleeping": true if no model has its weights in memory or is loading them}
http_answer is_sleeping(request_scope& scope);
/// The addresses at which the first model's KV events are published; an empty list if they are not
/// published.
http_answer kv_event_sources(request_scope& scope);
http_answer server_info(request_scope& scope);
http_answer model_info(request_scope& scope);

} // namespace twill::net
