// Reads the sampling fields that all APIs of twill share: OpenAI's fields and vLLM's additional
// ones.
//
// Unknown fields are accepted. Unknown fields that other servers have are logged once. Fields that
// would change the output and that twill does not support are refused by name, because ignoring
// them silently would give wrong answers. Any thread may call these functions.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "config/base/breach.hpp"
#include "config/sampling.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"

namespace twill::net {

/// Reads the fields that control sampling and the end of the output (`temperature`, `top_p`,
/// penalties, `seed`, `stop`, ...). Does not read the token limit and the number of
/// log-probabilities, whose names differ between APIs.
void read_sampling(fields& from, config::sampling_params& to);
/// Reads only the fields in `names`, all of which must be fields that read_sampling() reads.
void read_sampling(fields& from, std::span<const std::string_view> names,
                   config::sampling_params& to);

/// Reads the token limit from the first of `names` that the request gives (max_tokens,
/// max_completion_tokens, ...). If none is given, tries the names that llama.cpp, Ollama and TGI
/// use.
void read_token_limit(fields& from, std::initializer_list<std::string_view> names,
                      std::int32_t least, config::sampling_params& to);

/// Reads the Chat API's `logprobs` (a flag) and `top_logprobs`.
void read_chat_logprobs(fields& from, const codec_context& context, config::sampling_params& to);

/// Reads the number of alternative tokens whose log-probabilities the reply lists. -1 stands for
/// the whole vocabulary, and is refused if the vocabulary is larger than the server's limit.
void read_alternatives(fields& from, std::string_view name, const codec_context& context,
                       std::int32_t& to);

/// Reads `prompt_logprobs` and `truncate_prompt_tokens`.
void read_prompt_options(fields& from, const codec_context& context, actors::request& to);

/// Reads vLLM's `priority` and `cache_salt`.
void read_queue_fields(fields& from, actors::request& to);

/// Refuses fields that twill does not support (beam search, suffix, audio, ...). Logs the names of
/// the fields that twill ignores.
void reject_unsupported(fields& from);

/// Each add_..._rows() function adds the field_table rows of the fields that the read_...()
/// function of the same name reads. The rows describe the fields in "/openapi.json".
void add_sampling_rows(field_rows& to);
void add_sampling_rows(field_rows& to, std::span<const std::string_view> names);
void add_limit_rows(field_rows& to, std::initializer_list<std::string_view> names);
void add_chat_logprob_rows(field_rows& to);
void add_prompt_option_rows(field_rows& to);
void add_queue_rows(field_rows& to);
void add_foreign_rows(field_rows& to); ///< rows of reject_unsupported()

/// Checks the ranges of the values and the limits of the server, which are the same for all APIs.
/// Returns the first value that breaks a range or limit, with twill's own name of its field, or
/// nullopt if no value does.
std::optional<breach> breach_of(const config::sampling_params& params,
                                const codec_context& context);
/// As breach_of(); a breach is recorded in `from`.
void check_sampling(fields& from, const config::sampling_params& params,
                    const codec_context& context);

} // namespace twill::net
