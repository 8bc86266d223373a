// tokenizer_hints: behaviour of a model family's own tokenizer code that the files of its folders
// do not describe.
//
// Constant data, part of a family's descriptor. The defaults are for families whose files describe
// everything.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace twill::models {

/// A control token that a family's code appends to the pieces of tokenizer.model.
struct appended_token {
  std::string_view text;
  bool for_templates = false; ///< text from a user never becomes this token, even if special tokens
                              ///< are parsed in the text
  bool in_prefix = false;     ///< the token begins every prompt
  bool ends_generation = false; ///< the model ends its turn with this token
};

/// What the family's code adds to a *.tiktoken file, which has only tokens and ranks.
struct tiktoken_rules {
  std::string_view name;                      ///< name for messages: "qwen"
  std::string_view pretokenizer;              ///< name for find_pretokenizer(): "qwen2"
  std::span<const std::string_view> specials; ///< special tokens, whose ids follow those of the
                                              ///< ranks; the first one ends a text
  int n_extras = 0; ///< number of tokens <|extra_0|>, <|extra_1|>, ... whose ids follow those of
                    ///< `specials`
};

struct tokenizer_hints {
  /// Whether BOS begins a prompt when tokenizer_config.json has no `add_bos_token`. Without a
  /// value, BOS is added for tokenizer.model but not for vocab.json with merges.txt.
  std::optional<bool> adds_bos = std::nullopt;
  /// False if the family's tokenizer class ignores `legacy`, `add_bos_token` and `add_eos_token` of
  /// tokenizer_config.json. Every prompt then begins with the tokens of `appended` whose in_prefix
  /// is true.
  bool reads_flags = true;
  /// The control pieces of tokenizer.model can only be written by chat templates.
  bool pieces_for_templates = false;
  std::span<const appended_token> appended = {};
  /// Members of generation_config.json that name pieces with which templates open a turn.
  std::span<const char* const> role_keys = {};
  const tiktoken_rules* tiktoken = nullptr; ///< null: the family has no *.tiktoken files
};

} // namespace twill::models
