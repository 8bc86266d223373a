// parse_response_turn: parses the body of POST /v1/responses, or a WebSocket event response.create,
// as one turn of a conversation: the new input, what it continues, and the options of the response.
// The functions are pure, except that each reply gets a new id and the current time.
#pragma once

#include <functional>
#include <string>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/openai/response_store.hpp"

namespace twill::net {

/// The parts of a request that the response object repeats.
struct response_echo {
  reply_identity identity;
  std::string instructions;
  std::string previous_response_id;
  std::string user;
  std::string truncation = "disabled"; ///< "disabled" or "auto"
  value metadata = value_object{};
  value tools = value_list{};
  value tool_choice = "auto";
  value reasoning;
  value text = value_object{{"format", value_object{{"type", "text"}}}};
  std::int32_t max_output_tokens = -1;
  std::int32_t top_logprobs = 0;
  float temperature = 1;
  float top_p = 1;
  bool parallel_tool_calls = true;
  bool store = true;
  bool background = false;
  bool logprobs = false; ///< `include` contains "message.output_text.logprobs"
};

struct response_turn {
  actors::request request;
  remembered_ptr previous; ///< the response that the turn continues; null if there is none
  value_list messages;     ///< history and new input, without the instructions
  response_echo echo;
  bool stream = false;
  bool generate = true; ///< false: a warm-up, which generates no tokens (WebSocket only)
};

/// Looks up the response that previous_response_id names; nullptr if it is not remembered.
using find_previous = std::function<remembered_ptr(const std::string& id)>;

/// The fields that a body may contain, for "/openapi.json".
field_rows responses_rows();

result<response_turn> parse_response_turn(const value& body, const codec_context& context,
                                          const find_previous& find);

/// Returns what must be remembered of a request that has been answered with this text and these
/// tool calls (in the Chat API's form), so that a later request can continue the conversation.
remembered_response remember(const response_turn& turn, std::string output_text,
                             value_list tool_calls);

} // namespace twill::net
