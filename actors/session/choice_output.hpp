// choice_output: the output of one choice, from drawn tokens to events: text, stop strings, and the
// parts of parsed output.
//
// One thread at a time. The tokenizer and the sampling parameters outlive the object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "actors/session/output_plan.hpp"
#include "actors/session/stop_matcher.hpp"
#include "config/options.hpp"
#include "models/text/detokenizer.hpp"
#include "models/text/tool_calls/parser.hpp"

namespace twill::actors {

class choice_output {
public:
  /// `begins`: the output is a text of its own, not the continuation of the prompt's text.
  /// `parses`: the output is delivered in parts, which `plan.reading` describes.
  choice_output(const models::tokenizer& text, const config::sampling_params& params, bool begins,
                const output_plan& plan, bool parses);

  /// Adds a drawn token to the output. Puts the text or the parts that became final into `e`, and
  /// the reason why the choice ends, if it ends. No token may be added to a choice that has ended.
  void add(const token_ready& drawn, event& e);
  /// Brings the choice to the state that an earlier run of the request had reached: the text that
  /// is not sent yet (it may begin a stop string), the parser and the counts of tokens. `made` are
  /// the tokens of that run. The choice ends with a token whose id is in `stop_ids`, which are
  /// sorted, or when it has `max_new` tokens. Returns the reason why the choice ends with these
  /// tokens; nullopt if it does not end.
  std::optional<finish_reason> replay(std::span<const std::int32_t> made,
                                      const std::vector<std::int32_t>& stop_ids,
                                      std::int32_t max_new);

  /// Ends the choice, for a reason that the tokens do not show.
  void end() { is_over_ = true; }
  bool is_over() const { return is_over_; }
  std::int32_t n_tokens() const { return n_tokens_; }
  /// Tool calls that were parsed to their end.
  std::int32_t whole_calls() const { return whole_calls_; }

private:
  void add_text(const token_ready& drawn, event& e);
  void parse_text(event& e);

  const config::sampling_params& params_;
  models::detokenizer detokenize_;
  stop_matcher stops_;
  std::optional<models::tool_calls::parser> parser_; ///< set if the output is delivered in parts
  std::int32_t whole_calls_ = 0;
  std::int32_t n_tokens_ = 0;
  bool is_over_ = false;
};

} // namespace twill::actors
