// worker_routes: what routers in front of several daemons ask each of them: what it serves and how
// much it does. On session strands.
//
// The routes and members are those that the routers of vLLM and SGLang read: vllm-router and
// production-stack ask for /get_server_info, /load and /is_sleeping, sglang-router for
// /server_info, /model_info and /get_load. A model is known by its served name alone, never by a
// path. They need no key, as /metrics, which says the same.
#pragma once

#include "net/http/request_scope.hpp"

namespace twill::net {

/// {"server_load": requests that run or wait}
http_answer load(request_scope& scope);
/// A list with one object, since a daemon is one data-parallel rank: its requests, those of them
/// that wait, and the tokens of the KV blocks in use.
http_answer load_of_ranks(request_scope& scope);
/// {"is_sleeping": whether no model has its weights in memory, nor gets them}
http_answer is_sleeping(request_scope& scope);
/// Where the first model's KV events are published; an empty list where they are not.
http_answer kv_event_sources(request_scope& scope);
http_answer server_info(request_scope& scope);
http_answer model_info(request_scope& scope);

} // namespace twill::net
