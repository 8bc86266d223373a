// stored_generation: the reply and the request of a stored chat completion or completion, made anew
// from what is kept of it. Pure, but that the request has an echoed prompt of ids detokenized.
#pragma once

#include <cstdint>
#include <memory>

#include "net/protocol/codec.hpp"

namespace twill::net {

/// Its reply: a stream of the events with numbers above `after`, or one object.
result<std::unique_ptr<reply_encoder>> stored_generation_reply(const stored_head& head,
                                                               const actors::engine_port& engine,
                                                               bool stream, std::int64_t after);

/// The request anew, for going on with it, by the model and the limits of now.
result<actors::request> ask_generation_again(const stored_head& head, const codec_context& context);

} // namespace twill::net
