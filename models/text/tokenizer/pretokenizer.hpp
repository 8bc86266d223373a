// pretokenizer: cuts text into the words that a vocabulary model works within, by a row of rules.
//
// Each rule takes every piece that the one before left. Immutable; any thread may split. Texts must
// be well-formed UTF-8 (the caller checks).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/errc.hpp"
#include "models/text/tokenizer/regex.hpp"

namespace twill::models {

/// Pieces of one text, and the memory of those that rules changed.
struct word_list {
  std::vector<std::string_view> words; ///< none empty once cut
  std::deque<std::string> memory;
};

/// `at_start`: the text is the beginning of what the user gave, or follows a control token that
/// starts afresh.
using split_rule = std::function<result<nothing>(word_list& list, bool at_start)>;

/// What becomes of the matches of an expression (the words of a tokenizer.json).
enum class match_behavior { removed, isolated, contiguous, merged_with_previous, merged_with_next };

/// With `invert`, what the expression does not match counts as a match.
split_rule split_by(std::shared_ptr<const regex> expression, match_behavior behavior, bool invert);
/// A space in front of each piece that does not begin with one.
split_rule space_in_front();

enum class metaspace_prefix { always, first, never };
/// Spaces become `mark`; it is put in front where `prefix` says and it is not there yet; with
/// `split`, each mark begins a piece.
split_rule metaspace(std::string mark, metaspace_prefix prefix, bool split);
/// `mark` in front of a text at the start, whatever it begins with (SentencePiece's dummy prefix).
split_rule dummy_prefix(std::string mark);

class pretokenizer {
public:
  pretokenizer() = default;
  explicit pretokenizer(std::vector<split_rule> rules) : rules_(std::move(rules)) {}
  /// Each expression isolates its matches. errc::unsupported when one is unknown.
  static result<pretokenizer> from_expressions(const std::vector<std::string>& expressions);

  /// Replaces `list` by the words of `text`; they refer to its memory or the list's.
  result<nothing> split(std::string_view text, bool at_start, word_list& list) const;

private:
  std::vector<split_rule> rules_;
};

/// What the name in `tokenizer.ggml.pre` stands for.
struct pretokenizer_kind {
  std::vector<std::string> expressions;
  bool ignore_merges = false;   ///< a whole word of the vocabulary is taken without merging
  bool add_bos_default = false; ///< when the file does not say
};

/// errc::unsupported with the name when it is unknown.
result<pretokenizer_kind> find_pretokenizer(std::string_view name);

/// GPT-2's expression: what a ByteLevel pre-tokenizer cuts by.
extern const char* const gpt2_expression;

} // namespace twill::models
