// request: encodes and decodes the messages between the daemon and the helper process, which
// compiles grammars. The functions are pure; any thread may call them.
//
// Both processes come from one build and run on one machine, so numbers are sent as the 64-bit
// little-endian values that they are in memory.
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
  bool repeated_items = false;   ///< see schema_options
  std::int64_t cpu_ms = 0;       ///< limit of its processor time
};

std::string encoded(const config::grammar_spec& spec);
std::string encoded(const helper_request& request);
/// Returns none if the bytes are not a complete request.
std::optional<helper_request> decoded_request(std::string_view bytes);

/// The helper's answer: the text of the compiled grammar in EBNF, or the failure.
std::string encoded_answer(const result<std::string>& answer);
result<std::string> decoded_answer(std::string_view bytes);

} // namespace twill::models::grammar
