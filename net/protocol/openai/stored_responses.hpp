// stored_responses: what is stored of a request to the Responses API, and how the parsed request,
// the response object, the events and the conversation are rebuilt from it. The functions are pure,
// except that they call the engine that the caller passes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/protocol/openai/response_events.hpp"
#include "net/protocol/openai/responses.hpp"

namespace twill::net {

/// The header to store for a turn that was parsed from `body`.
stored_head stored_head_of(const response_turn& turn, const value& body, const std::string& tenant);

/// Rebuilds the turn in order to show it. The present limits and models do not matter.
result<response_turn> stored_turn(const stored_head& head, const actors::engine_port& engine);

/// Rebuilds the parsed request in order to continue an interrupted generation, with the model and
/// the limits that are in force now.
result<response_turn> ask_stored_again(const stored_head& head, const codec_context& context);

/// Rebuilds the events of a turn from what has been stored so far.
response_events replay_response(const response_turn& turn, const std::vector<std::string>& records);

/// What a following turn may continue; null if the response has not finished.
remembered_ptr remember_stored(const response_turn& turn, const std::vector<std::string>& records);

/// One item of the request's own input, without the history; each item has an id.
struct input_item {
  std::string id;
  std::string json;
};
std::vector<input_item> input_items_of(const stored_head& head);

} // namespace twill::net
