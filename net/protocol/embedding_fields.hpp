// What requests for embeddings, scores and ranks have in common: their extra fields and their
// bounds. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/prompt_fields.hpp"

namespace twill::net {

inline constexpr std::size_t max_inputs_per_call = 2048;

/// `pooling`, `dimensions`, `truncate_prompt_tokens`, `priority`, `cache_salt` and
/// `add_special_tokens`, and what would change the answer and is refused.
void read_pooled_request(fields& from, const codec_context& context, actors::request& to,
                         bool& add_special);

void add_pooled_rows(field_rows& to);

/// Adds a request for one input, which errors call `field`. An empty input is refused.
void add_pooled_request(fields& from, const std::string& field, any_prompt input,
                        const actors::request& asked, std::vector<actors::request>& to);

/// A request for each input of the member `field`: texts or token ids, one or a list.
std::vector<actors::request> read_pooled_inputs(fields& from, const std::string& field,
                                                const codec_context& context, bool add_special,
                                                const actors::request& asked);

/// Refuses what would make a reply too large to be held whole: so many inputs, each of whose
/// numbers takes so many bytes.
void check_reply_bytes(fields& from, const std::string& field, const codec_context& context,
                       std::size_t inputs, double bytes_per_number);

/// Bytes that a number takes in a reply: as text with the comma behind it, and in base64.
inline constexpr double text_bytes_per_number = 13, base64_bytes_per_number = 16.0 / 3;

} // namespace twill::net
