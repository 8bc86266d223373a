#include "models/text/tokenizer/oniguruma_sets.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace twill::models::oniguruma {
namespace {

constexpr const char* white_space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr const char* no_white_space =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
// The characters of Alphabetic, Mark, Decimal_Number and Connector_Punctuation. The ranges from
// \x{24B6} on are the letters in circles and squares, which are alphabetic although their general
// category is a symbol.
constexpr const char* word =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
constexpr const char* latin1_digits = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr const char* hex_digits = "0-9A-Fa-f";

character_set of(std::string items) {
  return {.items = std::move(items)};
}

character_set complement_of(std::string items) {
  return {.items = std::move(items), .negated = true};
}

/// Removes what does not count when names are compared: case, spaces, hyphens and underscores.
std::string normalized(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != ' ' && c != '-' && c != '_')
      out.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  return out;
}

struct named {
  std::string_view name; ///< normalized
  const char* items;
};

/// General categories and a few other properties, under all of their names.
constexpr named properties[] = {
    {"any", R"(\p{Any})"},
    {"assigned", R"(\P{Cn})"},
    {"lc", R"(\p{Lu}\p{Ll}\p{Lt})"},
    {"casedletter", R"(\p{Lu}\p{Ll}\p{Lt})"},
    {"c", R"(\p{C})"},
    {"other", R"(\p{C})"},
    {"cc", R"(\p{Cc})"},
    {"control", R"(\p{Cc})"},
    {"cf", R"(\p{Cf})"},
    {"format", R"(\p{Cf})"},
    {"cn", R"(\p{Cn})"},
    {"unassigned", R"(\p{Cn})"},
    {"co", R"(\p{Co})"},
    {"privateuse", R"(\p{Co})"},
    {"l", R"(\p{L})"},
    {"letter", R"(\p{L})"},
    {"ll", R"(\p{Ll})"},
    {"lowercaseletter", R"(\p{Ll})"},
    {"lm", R"(\p{Lm})"},
    {"modifierletter", R"(\p{Lm})"},
    {"lo", R"(\p{Lo})"},
    {"otherletter", R"(\p{Lo})"},
    {"lt", R"(\p{Lt})"},
    {"titlecaseletter", R"(\p{Lt})"},
    {"lu", R"(\p{Lu})"},
    {"uppercaseletter", R"(\p{Lu})"},
    {"m", R"(\p{M})"},
    {"mark", R"(\p{M})"},
    {"combiningmark", R"(\p{M})"},
    {"mc", R"(\p{Mc})"},
    {"spacingmark", R"(\p{Mc})"},
    {"me", R"(\p{Me})"},
    {"enclosingmark", R"(\p{Me})"},
    {"mn", R"(\p{Mn})"},
    {"nonspacingmark", R"(\p{Mn})"},
    {"n", R"(\p{N})"},
    {"number", R"(\p{N})"},
    {"nd", R"(\p{Nd})"},
    {"decimalnumber", R"(\p{Nd})"},
    {"nl", R"(\p{Nl})"},
    {"letternumber", R"(\p{Nl})"},
    {"no", R"(\p{No})"},
    {"othernumber", R"(\p{No})"},
    {"p", R"(\p{P})"},
    {"punctuation", R"(\p{P})"},
    {"punct", R"(\p{P})"}, // unlike [:punct:]
    {"pc", R"(\p{Pc})"},
    {"connectorpunctuation", R"(\p{Pc})"},
    {"pd", R"(\p{Pd})"},
    {"dashpunctuation", R"(\p{Pd})"},
    {"pe", R"(\p{Pe})"},
    {"closepunctuation", R"(\p{Pe})"},
    {"pf", R"(\p{Pf})"},
    {"finalpunctuation", R"(\p{Pf})"},
    {"pi", R"(\p{Pi})"},
    {"initialpunctuation", R"(\p{Pi})"},
    {"po", R"(\p{Po})"},
    {"otherpunctuation", R"(\p{Po})"},
    {"ps", R"(\p{Ps})"},
    {"openpunctuation", R"(\p{Ps})"},
    {"s", R"(\p{S})"},
    {"symbol", R"(\p{S})"},
    {"sc", R"(\p{Sc})"},
    {"currencysymbol", R"(\p{Sc})"},
    {"sk", R"(\p{Sk})"},
    {"modifiersymbol", R"(\p{Sk})"},
    {"sm", R"(\p{Sm})"},
    {"mathsymbol", R"(\p{Sm})"},
    {"so", R"(\p{So})"},
    {"othersymbol", R"(\p{So})"},
    {"z", R"(\p{Z})"},
    {"separator", R"(\p{Z})"},
    {"zl", R"(\p{Zl})"},
    {"lineseparator", R"(\p{Zl})"},
    {"zp", R"(\p{Zp})"},
    {"paragraphseparator", R"(\p{Zp})"},
    {"zs", R"(\p{Zs})"},
    {"spaceseparator", R"(\p{Zs})"},
    {"alphabetic", R"(\p{Alphabetic})"},
    {"lowercase", R"(\p{Lowercase})"},
    {"uppercase", R"(\p{Uppercase})"},
    {"whitespace", white_space},
    {"emoji", R"(\p{Emoji})"},
    {"emojipresentation", R"(\p{Emoji_Presentation})"},
    {"extendedpictographic", R"(\p{Extended_Pictographic})"},
    {"ideographic", R"(\p{Ideographic})"},
};

constexpr named posix[] = {
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"ascii", R"(\x{0}-\x{7F})"},
    {"blank", R"(\p{Zs}\x{9})"},
    {"cntrl", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})"},
    {"lower", R"(\p{Lowercase})"},
    {"punct", R"(\p{P}\p{S})"},
    {"space", white_space},
    {"upper", R"(\p{Uppercase})"},
    {"word", word},
    {"xdigit", hex_digits},
};

template <std::size_t N>
const named* find(const named (&list)[N], std::string_view name) {
  const auto* it = std::find_if(std::begin(list), std::end(list),
                                [&](const named& entry) { return entry.name == name; });
  return it == std::end(list) ? nullptr : it;
}

} // namespace

std::string character_set::matcher() const {
  std::string united = items.empty() ? std::string() : "[" + items + "]";
  if (matchers.empty()) return negated ? "[^" + items + "]" : united;
  // The group is atomic, so that a character that two parts match is not tried twice.
  std::string all = united;
  for (const std::string& one : matchers)
    all += (all.empty() ? "" : "|") + one;
  if (negated) return "(?:(?!" + all + ")[\\x{0}-\\x{10FFFF}])";
  return matchers.size() == 1 && items.empty() ? all : "(?>" + all + ")";
}

void character_set::add(const character_set& other) {
  if (other.negated || !other.matchers.empty())
    matchers.push_back(other.matcher());
  else
    items += other.items;
}

std::string literal(char32_t c) {
  const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (plain) return {static_cast<char>(c)};
  std::array<char, 16> text;
  std::snprintf(text.data(), text.size(), "\\x{%X}", static_cast<unsigned>(c));
  return text.data();
}

std::string range(char32_t first, char32_t last) {
  return first == last ? literal(first) : literal(first) + "-" + literal(last);
}

std::optional<character_set> type_set(char letter, bool in_class) {
  switch (letter) {
  case 'd':
    return of(R"(\p{Nd})");
  case 'D':
    return of(R"(\P{Nd})");
  case 's':
    return of(white_space);
  case 'S':
    return of(no_white_space);
  case 'h':
    return of(hex_digits);
  case 'H':
    return complement_of(hex_digits);
  case 'w':
    return of(in_class ? word : std::string(word) + latin1_digits);
  case 'W':
    return complement_of(in_class ? word : std::string(word) + latin1_digits);
  default:
    return std::nullopt;
  }
}

std::optional<character_set> posix_set(std::string_view name) {
  if (name == "graph") return complement_of(std::string(white_space) + R"(\p{Cc}\p{Cn}\p{Cs})");
  // [:print:] has the characters of [:graph:] and the spaces.
  if (name == "print") return complement_of(R"(\x{2028}\x{2029}\p{Cc}\p{Cn}\p{Cs})");
  const named* found = find(posix, name);
  return found == nullptr ? std::nullopt : std::optional(of(found->items));
}

std::optional<character_set> property_set(std::string_view name, bool in_class) {
  const std::string key = normalized(name);
  if (key == "word") return type_set('w', in_class);
  if (const named* found = find(properties, key)) return of(found->items);
  if (auto found = posix_set(key)) return found;
  // Any other name is taken as a Unicode script, such as `Greek`; PCRE2 refuses names that it does
  // not know. Without `sc:`, PCRE2 would add the characters that this script shares with other
  // scripts.
  if (key.empty() ||
      !std::all_of(key.begin(), key.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
    return std::nullopt;
  return of("\\p{sc:" + key + "}");
}

bool folds_alike(char32_t first, char32_t last) {
  constexpr std::pair<char32_t, char32_t> without_case[] = {
      {0x00, 0x7F},     {0x590, 0x109F},  {0x2000, 0x20FF}, {0x2190, 0x24B5},
      {0x2500, 0x2BFF}, {0x2E80, 0xA63F}, {0xAC00, 0xFAFF}, {0x1F000, 0x10FFFF},
  };
  return std::any_of(std::begin(without_case), std::end(without_case),
                     [&](const auto& r) { return first >= r.first && last <= r.second; });
}

bool folds_together(char32_t first, char32_t second) {
  const auto is = [](char32_t c, char lower) { return (c | 0x20) == static_cast<char32_t>(lower); };
  return (is(first, 's') && (is(second, 's') || is(second, 't'))) ||
         (is(first, 'f') && (is(second, 'f') || is(second, 'i') || is(second, 'l')));
}

} // namespace twill::models::oniguruma
