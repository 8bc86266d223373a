// Reading one prompt or a list of prompts, each a text or token ids. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

using any_prompt = decltype(actors::request::prompt);

/// The member `field`, which is required: a string, a list of token ids, or a list of at most
/// `most` of either. Ids must be below `vocab_size`, where that is above 0.
std::vector<any_prompt> read_prompts(fields& from, const std::string& field, bool add_special,
                                     std::int32_t vocab_size, std::size_t most);

} // namespace twill::net
