// stream_request: parses a `submit` message of /v1/stream. The functions are pure, except that each
// reply gets a new id and the current time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// What the frames of a stream contain.
struct stream_form {
  std::int32_t n = 1;
  bool logprobs = false;
  bool token_ids = true;
  bool text = true;
  bool parallel_calls = true;
  bool store = false;
  std::vector<std::int32_t> stop_token_ids;
};

struct asked_stream {
  actors::request request; ///< `tenant` and `client` are not set
  reply_identity identity;
  stream_form form;
};

/// Reads the id that names the stream in the messages of client and server, and returns it as JSON
/// text. If there is no valid id, reports an error to `from` and returns an empty string.
std::string read_stream_id(fields& from);

result<asked_stream> read_stream_request(const value& message, const codec_context& context);

/// The form of a stored stream, rebuilt in order to show its events.
result<stream_form> stored_stream_form(const stored_head& head, const actors::engine_port& engine);

/// Rebuilds the engine request of a stored stream in order to continue an interrupted generation,
/// with the model and the limits that are in force now.
result<actors::request> ask_stream_again(const stored_head& head, const codec_context& context);

} // namespace twill::net
