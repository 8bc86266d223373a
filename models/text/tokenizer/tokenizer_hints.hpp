// tokenizer_hints: what a family's own tokenizer code does and the files of its folders do not say.
//
// Constant data, part of a family's descriptor. The defaults are for folders whose files say
// everything.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace twill::models {

/// A control token that a family's code appends to the pieces of tokenizer.model.
struct appended_token {
  std::string_view text;
  bool for_templates =
      false;              ///< no text of a user becomes this token, even when it asks for parsing
  bool in_prefix = false; ///< the token begins every prompt
  bool ends_generation = false; ///< the model hands over with this token
};

/// What a *.tiktoken file, which has tokens and ranks alone, leaves to the family's code.
struct tiktoken_rules {
  std::string_view name;                      ///< for people: "qwen"
  std::string_view pretokenizer;              ///< as find_pretokenizer() knows it: "qwen2"
  std::span<const std::string_view> specials; ///< after the ranks; the first ends a text
  int n_extras = 0;                           ///< then <|extra_0|>, <|extra_1|>, ...
};

struct tokenizer_hints {
  /// Whether BOS begins a prompt when tokenizer_config.json has no `add_bos_token`. Without a value
  /// it does for tokenizer.model, and does not for vocab.json with merges.txt.
  std::optional<bool> adds_bos = std::nullopt;
  /// False when the family's tokenizer class reads none of `legacy`, `add_bos_token` and
  /// `add_eos_token` of tokenizer_config.json. The prefix is then that of `appended`.
  bool reads_flags = true;
  /// The control pieces of tokenizer.model are for templates alone.
  bool pieces_for_templates = false;
  std::span<const appended_token> appended = {};
  /// Members of generation_config.json that name pieces with which templates open a turn.
  std::span<const char* const> role_keys = {};
  const tiktoken_rules* tiktoken = nullptr; ///< null: the family has no *.tiktoken files
};

} // namespace twill::models
