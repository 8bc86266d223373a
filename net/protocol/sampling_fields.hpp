// Reading the sampling fields that all our dialects share: OpenAI's, and vLLM's extra ones.
//
// Unknown fields are accepted; those of other servers are named in the log. Fields that would
// change the output and that we do not have are refused by name, for silently ignoring them would
// give wrong answers. Any thread.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "config/sampling.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Temperature to stop strings; not the token limit or log-probabilities, whose names differ.
void read_sampling(fields& from, config::sampling_params& to);
/// Reads only these of the fields, whose names must be among them.
void read_sampling(fields& from, std::span<const std::string_view> names,
                   config::sampling_params& to);

/// The first of the names that is given wins: max_tokens, max_completion_tokens, ...; then the
/// names that other servers have for it.
void read_token_limit(fields& from, std::initializer_list<std::string_view> names,
                      std::int32_t least, config::sampling_params& to);

/// Chat's `logprobs` (a flag) and `top_logprobs`.
void read_chat_logprobs(fields& from, const codec_context& context, config::sampling_params& to);

/// A number of alternatives. -1 stands for the whole vocabulary, and is refused where that is more
/// than the limit.
void read_alternatives(fields& from, std::string_view name, const codec_context& context,
                       std::int32_t& to);

/// `prompt_logprobs` and `truncate_prompt_tokens`.
void read_prompt_options(fields& from, const codec_context& context, actors::request& to);

/// vLLM's `priority` and `cache_salt`.
void read_queue_fields(fields& from, actors::request& to);

/// Refuses fields that twill does not support: beam search, suffix, audio, ... Names in the log
/// what it ignores.
void reject_unsupported(fields& from);

/// What each of these reads, as rows for "/openapi.json".
void add_sampling_rows(field_rows& to);
void add_sampling_rows(field_rows& to, std::span<const std::string_view> names);
void add_limit_rows(field_rows& to, std::initializer_list<std::string_view> names);
void add_chat_logprob_rows(field_rows& to);
void add_prompt_option_rows(field_rows& to);
void add_queue_rows(field_rows& to);
void add_foreign_rows(field_rows& to); ///< of reject_unsupported()

/// Checks ranges and the limits of the server; all dialects have these rules.
/// `stop_name` is what the API calls its stop strings.
void check_sampling(fields& from, const config::sampling_params& params,
                    const codec_context& context, std::string_view stop_name = "stop");

} // namespace twill::net
