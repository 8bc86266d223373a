// continuation: finds what a new engine request continues: the earlier response that
// `previous_response_id` names, or the request of a stored response whose generation was
// interrupted.
//
// Any thread may call these functions. They use the limits, keys and models that are in force now.
#pragma once

#include <string>

#include "net/protocol/codec.hpp"
#include "net/server_context.hpp"
#include "net/stored/stored_service.hpp"

namespace twill::net {

/// Finds a response of this tenant among the remembered responses of warm-ups (requests with
/// `generate: false`) and the stored responses of the Responses API. Null if there is none or if it
/// still runs.
remembered_ptr find_continued(const server_context& context, const stored_service& stored,
                              const std::string& id, const std::string& tenant);

/// Builds a request from a stored request again, to resume it.
result<actors::request> ask_again(const server_context& context, const stored_head& head);

} // namespace twill::net
