// stored_generation: rebuilds the reply and the engine request of a stored chat completion or
// completion. The functions are pure, except that ask_generation_again() detokenizes a prompt of
// token ids which is to be echoed.
#pragma once

#include <cstdint>
#include <memory>

#include "net/protocol/codec.hpp"

namespace twill::net {

/// Makes the encoder of the stored reply: a stream of the events with numbers above `after`, or one
/// object.
result<std::unique_ptr<reply_encoder>> stored_generation_reply(const stored_head& head,
                                                               const actors::engine_port& engine,
                                                               bool stream, std::int64_t after);

/// Rebuilds the engine request in order to continue an interrupted generation, with the model and
/// the limits that are in force now.
result<actors::request> ask_generation_again(const stored_head& head, const codec_context& context);

} // namespace twill::net
