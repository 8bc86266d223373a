// stored_reading: a stored response over HTTP, as a stream or as one object, and the request of one
// of any protocol anew. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"

namespace twill::net {

/// The events with numbers above `after`, made anew from all of its events; -1: all. Not of
/// /v1/stream, whose frames its dialect makes.
result<std::unique_ptr<reply_encoder>>
stored_stream(const stored_head& head, const actors::engine_port& engine, std::int64_t after);

/// The reply that is sent whole, with what there is so far; choices of a completion that were
/// cancelled have no finish_reason. A completion that has failed is its error; a response says by
/// itself that it has. Not of /v1/stream either.
result<std::string> stored_object(const stored_head& head, const std::vector<std::string>& records,
                                  const actors::engine_port& engine);

/// The request anew, for going on with it, by the model and the limits of now.
result<actors::request> ask_anew(const stored_head& head, const codec_context& context);

} // namespace twill::net
