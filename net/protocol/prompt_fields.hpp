// Reads one prompt or a list of prompts, each of which is a text or a list of token ids. The
// functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

using any_prompt = decltype(actors::request::prompt);

/// Reads the required member `field`: a string, a list of token ids, or a list of at most `most`
/// strings or lists of ids. If `vocab_size` is above 0, ids must be below it.
std::vector<any_prompt> read_prompts(fields& from, const std::string& field, bool add_special,
                                     std::int32_t vocab_size, std::size_t most);

} // namespace twill::net
