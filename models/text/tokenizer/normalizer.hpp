// normalizer: changes a text before it is cut into words, by a row of steps.
//
// Immutable; any thread may apply. Texts must be well-formed UTF-8, and stay so. A text that grows
// out of hand ends in a failure (bad_text).
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

using normalize_step = std::function<result<std::string>(std::string text)>;

class normalizer {
public:
  normalizer() = default;
  explicit normalizer(std::vector<normalize_step> steps) : steps_(std::move(steps)) {}
  bool empty() const { return steps_.empty(); }
  result<std::string> apply(std::string_view text) const;

private:
  std::vector<normalize_step> steps_;
};

normalize_step to_normal_form(normal_form form);
normalize_step to_lowercase();
normalize_step strip_space(bool left, bool right);
/// Drops combining marks.
normalize_step strip_marks();
/// In front of a text that is not empty.
normalize_step prepend(std::string mark);
normalize_step replace_text(std::string what, std::string by);
normalize_step replace_matches(std::shared_ptr<const regex> what, std::string by);
/// SentencePiece's NMT rules: odd control characters vanish, odd spaces become " ".
normalize_step nmt_rules();
/// SentencePiece's compiled rules (a double array of texts and their replacements); they come from
/// a file and are trusted in nothing. errc::bad_format when they cannot be such rules.
result<normalize_step> compiled_rules(std::string charsmap);

} // namespace twill::models
