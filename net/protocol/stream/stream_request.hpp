// stream_request: what a `submit` of /v1/stream asks. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// What its frames show.
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
  actors::request request; ///< without tenant and client
  reply_identity identity;
  stream_form form;
};

/// The id as JSON text, which names the stream in both directions; empty when there is none, which
/// `from` then says.
std::string read_stream_id(fields& from);

result<asked_stream> read_stream_request(const value& message, const codec_context& context);

/// The same of a stored stream, for showing what became of it.
result<stream_form> stored_stream_form(const stored_head& head, const actors::engine_port& engine);

/// The request of a stored stream anew, for going on with it, by the model and the limits of now.
result<actors::request> ask_stream_again(const stored_head& head, const codec_context& context);

} // namespace twill::net
