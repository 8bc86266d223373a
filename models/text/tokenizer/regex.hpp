// regex: one regular expression over valid UTF-8, bounded in time.
//
// PCRE2 with UTF and UCP; `\s`, `\S` and `\w` mean what the reference implementations mean by them:
// Unicode White_Space, and Alphabetic, marks, digits, connectors and joiners (as Rust's regex has
// it). Immutable; any thread may search.
// A match that exceeds its limits ends in a failure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/errc.hpp"

namespace twill::models {

/// Byte ranges [first, second) in a text, ascending and disjoint; some may be empty.
using match_list = std::vector<std::pair<std::size_t, std::size_t>>;

class regex {
public:
  /// Compiles an expression; fails with unsupported when PCRE2 does not know it.
  static result<std::shared_ptr<const regex>> make(const std::string& expression);
  /// Compiles an expression in the syntax of tokenizer.json (oniguruma.hpp), with its meaning
  /// there.
  static result<std::shared_ptr<const regex>> make_oniguruma(const std::string& expression);
  ~regex();

  /// Reusable memory of searches with one expression, which one thread uses at a time.
  class finder {
  public:
    explicit finder(const regex& what);
    ~finder();
    finder(const finder&) = delete;
    finder& operator=(const finder&) = delete;
    /// Replaces `matches` by all matches in `text`, each as early and then as the expression
    /// prefers it. Empty ones count, except right behind the match before.
    result<nothing> find_all(std::string_view text, match_list& matches);

  private:
    struct impl;
    std::unique_ptr<impl> impl_;
  };

private:
  regex();
  /// Compiles `source`; a failure shows `given`, what the file has.
  static result<std::shared_ptr<const regex>> compile(const std::string& source,
                                                      const std::string& given);
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::models
