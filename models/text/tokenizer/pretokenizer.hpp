// pretokenizer: cuts text by a list of rules into words. A word model (word_model.hpp), such as
// BPE, encodes the words one by one.
//
// Each rule is applied to the words that the rule before it produced. Immutable; any thread may
// split. Texts must be well-formed UTF-8 (the caller checks).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/errc.hpp"
#include "models/text/tokenizer/regex.hpp"

namespace twill::models {

/// The words of one text, with the memory of the words that rules have changed.
struct word_list {
  std::vector<std::string_view> words; ///< rules leave no empty words
  std::deque<std::string> memory;
};

/// A rule that replaces the words of `list`. `at_start` is true if the list is the beginning of a
/// text, or follows a control token after which encoding begins afresh.
using split_rule = std::function<result<nothing>(word_list& list, bool at_start)>;

/// How the matches of an expression are treated, named as in a tokenizer.json.
enum class match_behavior { removed, isolated, contiguous, merged_with_previous, merged_with_next };

/// Splits words at the matches of an expression. With `invert`, the parts between the matches are
/// treated as the matches.
split_rule split_by(std::shared_ptr<const regex> expression, match_behavior behavior, bool invert);
/// Cuts words inside each match, before every group of three characters, counted from the match's
/// end.
split_rule split_in_threes(std::shared_ptr<const regex> expression);
/// Puts a space in front of each word that does not begin with one.
split_rule space_in_front();

enum class metaspace_prefix { always, first, never };
/// Replaces spaces by `mark`, such as SentencePiece's U+2581. Puts a mark in front of a text that
/// does not begin with one, if `prefix` requires it. With `split`, each mark begins a new word.
split_rule metaspace(std::string mark, metaspace_prefix prefix, bool split);
/// Puts `mark` (SentencePiece's dummy prefix) in front of the first word at the beginning of a
/// text, even if the word begins with a mark.
split_rule dummy_prefix(std::string mark);

/// One expression whose matches become words. With `in_threes`, words are instead cut inside each
/// match, as split_in_threes() does.
struct split_step {
  std::string expression;
  bool in_threes = false;
};

class pretokenizer {
public:
  pretokenizer() = default;
  explicit pretokenizer(std::vector<split_rule> rules) : rules_(std::move(rules)) {}
  /// Fails with unsupported for an expression that PCRE2 does not know.
  static result<pretokenizer> from_steps(const std::vector<split_step>& steps);

  /// Replaces `list` by the words of `text`. The words refer to the memory of `text` or of `list`.
  result<nothing> split(std::string_view text, bool at_start, word_list& list) const;
  /// Applies the rules to the words that `list` has.
  result<nothing> split_words(word_list& list, bool at_start) const;

private:
  std::vector<split_rule> rules_;
};

/// The rules that a name in `tokenizer.ggml.pre` stands for.
struct pretokenizer_kind {
  std::vector<split_step> steps;
  bool ignore_merges = false;   ///< a word that is a token is encoded as that token without merging
  bool add_bos_default = false; ///< whether BOS is added when the file does not say
};

/// The kind of that name; fails with unsupported, naming it.
result<pretokenizer_kind> find_pretokenizer(std::string_view name);
/// All names that find_pretokenizer() knows.
std::vector<std::string_view> pretokenizer_names();

/// Returns steps that cut a text as `expression` of a tokenizer.json does with the behavior
/// `isolated`, but in linear time. There are such steps for published expressions that look ahead
/// from each digit of a number to the number's end. Returns none for other expressions.
std::optional<std::vector<split_step>> linear_steps(std::string_view expression);

/// GPT-2's expression, by which a ByteLevel pre-tokenizer cuts.
extern const char* const gpt2_expression;

} // namespace twill::models
