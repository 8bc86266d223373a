// stored_responses: a stored response in the words of the Responses API: what is kept of a turn,
// and turn, object, events and conversation made anew from it. Pure but for the engine's texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/protocol/openai/response_events.hpp"
#include "net/protocol/openai/responses.hpp"

namespace twill::net {

/// What is stored of a turn whose body this was.
stored_head stored_head_of(const response_turn& turn, const value& body, const std::string& tenant);

/// The turn as it was, for reading: no limit of today and no model is asked.
result<response_turn> stored_turn(const stored_head& head, const actors::engine_port& engine);

/// The request anew, for going on with it, by the model and the limits of now.
result<response_turn> ask_stored_again(const stored_head& head, const codec_context& context);

/// The events of a turn so far.
response_events replay_response(const response_turn& turn, const std::vector<std::string>& records);

/// What a next turn may continue; null where the response has not finished.
remembered_ptr remember_stored(const response_turn& turn, const std::vector<std::string>& records);

/// The items of its own input, with ids, in their order.
struct input_item {
  std::string id;
  std::string json;
};
std::vector<input_item> input_items_of(const stored_head& head);

} // namespace twill::net
