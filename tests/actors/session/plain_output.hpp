// plain_output: what a client must see of one choice: the bytes, the whole text, and the part of
// the text that later tokens cannot change. Each function computes its result from all tokens
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "actors/session/output_plan.hpp"
#include "models/text/tokenizer.hpp"

namespace session_tests {

/// The rules by which the tokens of a choice are read.
struct plain_rules {
  const twill::models::tokenizer* tokens = nullptr;
  const twill::config::sampling_params* params = nullptr;
  std::vector<std::int32_t> stop_ids;
  std::vector<std::int32_t> shown; ///< special tokens whose text belongs to the output
  bool begins = false;             ///< the output is a text of its own, not the end of the prompt's
  bool parses = false;
  twill::models::tool_calls::parser_options reading; ///< used if `parses`
  std::size_t max_new = 0;
};

/// The state of a choice after some of its tokens.
struct plain_reading {
  std::string text; ///< all text that a client may receive
  std::optional<twill::actors::finish_reason> finish;
  std::string stop_string;
  std::int32_t stop_token = -1;
};

/// What the last token adds to the output.
struct plain_step {
  std::string text;                              ///< empty if the output comes in parts
  std::vector<twill::actors::output_part> parts; ///< empty unless the output comes in parts
  plain_reading reading;                         ///< the state after all tokens
  bool called = false;                           ///< the output contains a whole call
};

/// The bytes as text, each invalid part as U+FFFD. An unfinished character at the end is left out
/// while bytes may follow. If none follow (`over`), it is invalid and becomes U+FFFD.
std::string plain_text(const std::string& bytes, bool over);

/// What `ids` read as. No token before the last one may end the output.
plain_reading read_plainly(const plain_rules& rules, std::span<const std::int32_t> ids);

/// As read_plainly(), and what the last of `ids` adds to the text or to the parts of the output.
plain_step last_step(const plain_rules& rules, std::span<const std::int32_t> ids);

} // namespace session_tests
