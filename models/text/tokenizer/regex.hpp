// regex: one regular expression over valid UTF-8, bounded in time.
//
// It uses PCRE2 with UTF and UCP. `\s`, `\S` and `\w` have the meaning of the reference
// implementations (Rust's regex): `\s` is Unicode White_Space; `\w` is Alphabetic, marks, digits,
// connectors and joiners. Immutable; any thread may search. A search that exceeds PCRE2's limits of
// steps or memory fails.
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
  /// Compiles an expression in the syntax and with the meaning of tokenizer.json (see
  /// oniguruma.hpp).
  static result<std::shared_ptr<const regex>> make_oniguruma(const std::string& expression);
  ~regex();

  /// Memory that searches with one expression reuse; one thread at a time.
  class finder {
  public:
    explicit finder(const regex& what);
    ~finder();
    finder(const finder&) = delete;
    finder& operator=(const finder&) = delete;
    /// Replaces `matches` by all matches in `text`, from left to right. Each search begins at the
    /// end of the previous match and finds the leftmost match; if several matches begin there, it
    /// finds the one that the expression prefers. Empty matches count, except directly after
    /// another match.
    result<nothing> find_all(std::string_view text, match_list& matches);

  private:
    struct impl;
    std::unique_ptr<impl> impl_;
  };

private:
  regex();
  /// Compiles `source`. A failure shows `given`, the expression as it is in the file.
  static result<std::shared_ptr<const regex>> compile(const std::string& source,
                                                      const std::string& given);
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::models
