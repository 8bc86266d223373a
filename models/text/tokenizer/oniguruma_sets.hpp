// oniguruma_sets: sets of characters of Oniguruma's expressions, as parts of PCRE2's classes.
//
// Private to oniguruma*.cpp. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::models::oniguruma {

/// A set of characters: what the items of a PCRE2 class and the matchers hold together.
struct character_set {
  std::string items;                 ///< what stands between the brackets of a PCRE2 class
  std::vector<std::string> matchers; ///< expressions that match exactly one character each
  bool negated = false;
  int n_sets = 0;              ///< how many sets of its own a class unites
  bool has_complement = false; ///< one of them is a complement

  /// An expression that matches one character of the set, and never in two ways.
  std::string matcher() const;
  void add(const character_set& other);
};

/// The character as an item of a class or as a literal outside of one.
std::string literal(char32_t c);
std::string range(char32_t first, char32_t last);

/// The set of `\w`, `\d`, `\s` or `\h` (or of its capital letter, the complement). Oniguruma counts
/// six digits of Latin-1, such as U+00B2, as word characters outside of a class alone.
std::optional<character_set> type_set(char letter, bool in_class);
/// The set of `[:name:]`.
std::optional<character_set> posix_set(std::string_view name);
/// The set of `\p{name}`: a general category, a script, or one of few other properties.
std::optional<character_set> property_set(std::string_view name, bool in_class);

/// Whether Oniguruma's and PCRE2's case folding agree on a class of `first` to `last`: ASCII, and
/// ranges in which no character has a case.
bool folds_alike(char32_t first, char32_t last);
/// Whether a text of two ASCII letters is also the case folding of one character, as "ss" is of ß.
bool folds_together(char32_t first, char32_t second);

} // namespace twill::models::oniguruma
