// oniguruma_sets: the character sets of Oniguruma's expressions, written with PCRE2's classes.
//
// Private to oniguruma*.cpp. The functions are pure; any thread may call them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::models::oniguruma {

/// A set of characters. It has each character that is in the PCRE2 class with the given `items` or
/// that an expression in `matchers` matches. If `negated` is true, it has all characters but these.
struct character_set {
  std::string items;                 ///< the text between the brackets of a PCRE2 class
  std::vector<std::string> matchers; ///< expressions that match exactly one character each
  bool negated = false;
  int n_sets = 0;              ///< number of nested sets that the class unites
  bool has_complement = false; ///< one of the united sets is a complement

  /// An expression that matches exactly one character of the set, and each character in only one
  /// way.
  std::string matcher() const;
  void add(const character_set& other);
};

/// The character as an item of a class or as a literal outside of one.
std::string literal(char32_t c);
std::string range(char32_t first, char32_t last);

/// The set of `\w`, `\d`, `\s` or `\h` (or of its capital letter, the complement). Oniguruma counts
/// six Latin-1 characters, such as U+00B2, as word characters only outside of a class.
std::optional<character_set> type_set(char letter, bool in_class);
/// The set of `[:name:]`.
std::optional<character_set> posix_set(std::string_view name);
/// The set of `\p{name}`: a general category, a script, or one of few other properties.
std::optional<character_set> property_set(std::string_view name, bool in_class);

/// Whether Oniguruma and PCRE2 fold the case of the character class from `first` to `last` in the
/// same way. They do for ASCII and for ranges in which no character has a case.
bool folds_alike(char32_t first, char32_t last);
/// Whether a text of two ASCII letters is also the case folding of one character, as "ss" is of ß.
bool folds_together(char32_t first, char32_t second);

} // namespace twill::models::oniguruma
