// pretokenizer: cuts text into the words that BPE merges within, by a row of regular expressions.
//
// Each expression cuts every piece that the one before left: a match is a piece, the text between
// matches is a piece. Immutable; any thread may split. Texts must be well-formed UTF-8 (the caller
// checks). Expressions whose matching goes out of hand end in a failure, never in a hang.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/errc.hpp"

namespace twill::models {

class pretokenizer {
public:
  /// `\s` and `\S` mean Unicode White_Space; all else is PCRE2 syntax with UTF and UCP.
  static result<std::unique_ptr<const pretokenizer>>
  make(const std::vector<std::string>& expressions);
  ~pretokenizer();

  /// Appends the pieces of `text`; they refer to its memory and none is empty.
  result<nothing> split(std::string_view text, std::vector<std::string_view>& pieces) const;

private:
  pretokenizer();
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// What the name in `tokenizer.ggml.pre` stands for.
struct pretokenizer_kind {
  std::vector<std::string> expressions;
  bool ignore_merges = false;   ///< a whole word of the vocabulary is taken without merging
  bool add_bos_default = false; ///< when the file does not say
};

/// errc::unsupported with the name when it is unknown.
result<pretokenizer_kind> find_pretokenizer(std::string_view name);

} // namespace twill::models
