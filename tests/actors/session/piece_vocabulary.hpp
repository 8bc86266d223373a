// A tokenizer with a few tokens: beginnings, middles and ends of characters and of stop strings,
// text of several letters, control tokens, and a token whose first space is not part of the text.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "models/text/tokenizer.hpp"

namespace session_tests {

class piece_vocabulary final : public twill::models::tokenizer {
public:
  static constexpr std::array pieces{
      std::string_view("a"), std::string_view("b"), std::string_view("ab"), std::string_view("ba"),
      std::string_view("aab"), std::string_view("\xC3"), std::string_view("\xA4"),
      std::string_view("\xC3\xA4"), std::string_view("a\xE2\x82"), std::string_view("\xAC"),
      std::string_view("\xAC"
                       "b"),
      std::string_view("\xF0\x9F"),
      std::string_view("\x98\x80"
                       "a"),
      std::string_view("\xFF"), std::string_view(""), std::string_view(" "), std::string_view(" a"),
      std::string_view("b a"),
      // Parts of calls and of reasoning.
      std::string_view("{\"name\": \"look\", \"arguments\": {"), std::string_view("\"x\": 1"),
      std::string_view("}"), std::string_view("}}\n"), std::string_view("<tool"),
      std::string_view("_call>"), std::string_view("</tool_call>"),
      // Control tokens.
      std::string_view("<tool_call>"), std::string_view("<think>"), std::string_view("</think>"),
      std::string_view("<mark>"), std::string_view("</s>")};
  static constexpr std::int32_t n_pieces = static_cast<std::int32_t>(pieces.size());
  static constexpr std::int32_t n_letters = 18; ///< how many of the first pieces spell text
  static constexpr std::int32_t call = n_pieces - 5, think = n_pieces - 4, end_think = n_pieces - 3,
                                mark = n_pieces - 2, end = n_pieces - 1;

  twill::models::result<std::vector<twill::models::token_id>>
  encode(std::string_view, const twill::models::encode_options&) const override {
    return std::vector<twill::models::token_id>{0};
  }
  twill::models::result<std::vector<twill::models::token_id>>
  encode_prompt(std::string_view, const twill::models::byte_ranges&) const override {
    return std::vector<twill::models::token_id>{0};
  }
  std::string token_bytes(twill::models::token_id id, bool special) const override {
    if (id < 0 || id >= n_pieces || (is_special(id) && !special)) return {};
    return std::string(pieces[static_cast<std::size_t>(id)]);
  }
  bool drops_leading_space(twill::models::token_id id) const override {
    return id >= 0 && id < n_pieces && pieces[static_cast<std::size_t>(id)].starts_with(' ');
  }
  std::int32_t vocab_size() const override { return n_pieces; }
  bool is_special(twill::models::token_id id) const override { return id >= call && id <= end; }
  const std::vector<twill::models::token_id>& end_ids() const override { return ends_; }
  twill::models::token_id bos_id() const override { return -1; }
  twill::models::token_id eos_id() const override { return end; }
  std::string kind() const override { return "pieces"; }

private:
  std::vector<twill::models::token_id> ends_{end};
};

/// A token with its alternatives as clients see them.
inline twill::actors::token_output
named_piece(std::int32_t id, float logprob,
            const std::vector<std::pair<std::int32_t, float>>& top) {
  const piece_vocabulary pieces;
  twill::actors::token_output out;
  out.chosen = {id, pieces.token_bytes(id, true), logprob};
  for (const auto& [other, other_logprob] : top)
    out.top.push_back({other, pieces.token_bytes(other, true), other_logprob});
  return out;
}

} // namespace session_tests
