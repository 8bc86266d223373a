// normalizer: changes a text by a list of rules before it is cut into words.
//
// Immutable; any thread may apply it. Texts must be well-formed UTF-8 and remain so. A text that
// grows too much fails with bad_text.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/errc.hpp"
#include "models/text/tokenizer/regex.hpp"
#include "models/text/tokenizer/unicode.hpp"

namespace twill::models {

using normalize_rule = std::function<result<std::string>(std::string text)>;

class normalizer {
public:
  normalizer() = default;
  explicit normalizer(std::vector<normalize_rule> rules) : rules_(std::move(rules)) {}
  bool empty() const { return rules_.empty(); }
  result<std::string> apply(std::string_view text) const;

private:
  std::vector<normalize_rule> rules_;
};

normalize_rule to_normal_form(normal_form form);
normalize_rule to_lowercase();
normalize_rule strip_space(bool left, bool right);
/// Removes combining marks.
normalize_rule strip_marks();
/// Puts `mark` in front of a text that is not empty.
normalize_rule prepend(std::string mark);
normalize_rule replace_text(std::string what, std::string by);
normalize_rule replace_matches(std::shared_ptr<const regex> what, std::string by);
/// SentencePiece's NMT rules: unusual control characters are dropped, unusual spaces become " ".
normalize_rule nmt_rules();
/// SentencePiece's compiled rules: a trie of texts, stored as a double array, and their
/// replacements. `charsmap` comes from a file and is not trusted. Fails with bad_format if it
/// cannot hold such rules.
result<normalize_rule> compiled_rules(std::string charsmap);

} // namespace twill::models
