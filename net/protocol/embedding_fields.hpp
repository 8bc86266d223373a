// The fields that requests for embeddings, scores and ranks have in common, and the limits of such
// requests. The functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/prompt_fields.hpp"

namespace twill::net {

inline constexpr std::size_t max_inputs_per_call = 2048;

/// Reads `pooling`, `dimensions`, `truncate_prompt_tokens`, `priority`, `cache_salt` and
/// `add_special_tokens`. Refuses fields that would change the result and that twill does not
/// support.
void read_pooled_request(fields& from, const codec_context& context, actors::request& to,
                         bool& add_special);

void add_pooled_rows(field_rows& to);

/// Adds to `to` a copy of `asked` with `input` as its prompt. An empty input is refused; the error
/// message calls the input `field`.
void add_pooled_request(fields& from, const std::string& field, any_prompt input,
                        const actors::request& asked, std::vector<actors::request>& to);

/// Reads the member `field` (a text, a list of token ids, or a list of either) and makes one
/// request for each input.
std::vector<actors::request> read_pooled_inputs(fields& from, const std::string& field,
                                                const codec_context& context, bool add_special,
                                                const actors::request& asked);

/// Refuses a call whose reply would be too large to be held whole in memory. The reply consists of
/// `inputs` vectors; each number in a vector takes `bytes_per_number` bytes.
void check_reply_bytes(fields& from, const std::string& field, const codec_context& context,
                       std::size_t inputs, double bytes_per_number);

/// Bytes that one number takes in a reply: as decimal text including the comma, and as base64.
inline constexpr double text_bytes_per_number = 13, base64_bytes_per_number = 16.0 / 3;

} // namespace twill::net
