// stored_reading: builds the event stream or the reply object of a response that was stored over
// HTTP, and rebuilds the engine request of any stored response. The functions are pure, except that
// they call the engine that the caller passes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"

namespace twill::net {

/// Makes an encoder that rebuilds the stream from all stored engine events, and emits only the
/// events of the stream whose numbers are above `after` (-1: all). It cannot be used for responses
/// of /v1/stream, whose frames are made by stream_dialect.
result<std::unique_ptr<reply_encoder>>
stored_stream(const stored_head& head, const actors::engine_port& engine, std::int64_t after);

/// Returns the reply as one JSON object, made from the events that are stored so far. Choices of a
/// completion that were cancelled have no finish_reason. If a completion or chat has failed, its
/// error is returned; a failed object of the Responses API states the error itself. It cannot be
/// used for responses of /v1/stream.
result<std::string> stored_object(const stored_head& head, const std::vector<std::string>& records,
                                  const actors::engine_port& engine);

/// Rebuilds the engine request in order to continue an interrupted generation, with the model and
/// the limits that are in force now.
result<actors::request> ask_anew(const stored_head& head, const codec_context& context);

} // namespace twill::net
