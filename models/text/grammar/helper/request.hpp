// request: what goes to the helper process and back, as bytes. Pure; any thread.
//
// Both ends are the same build on the same machine; numbers are 64 bits, little endian as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/grammar_spec.hpp"
#include "models/text/grammar/errc.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models::grammar {

struct helper_request {
  config::grammar_spec spec;
  std::vector<std::string> token_bytes;
  std::vector<token_id> end_ids;
  std::int64_t memory_bytes = 0; ///< limit of the helper's address space beyond what it starts with
  bool repeated_items = false;   ///< as schema_options has it
  std::int64_t cpu_ms = 0;       ///< limit of its processor time
};

std::string encoded(const config::grammar_spec& spec);
std::string encoded(const helper_request& request);
/// Nothing when the bytes are no whole request.
std::optional<helper_request> decoded_request(std::string_view bytes);

/// The helper's answer: the grammar's text in EBNF, once it compiled, or why there is none.
std::string encoded_answer(const result<std::string>& answer);
result<std::string> decoded_answer(std::string_view bytes);

} // namespace twill::models::grammar
