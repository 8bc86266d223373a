#include "models/text/grammar/schema/regex_text.hpp"

#include <algorithm>
#include <utility>

namespace twill::models::grammar {
namespace {

using node_kind = regex_node_kind;
using unit_text = std::function<std::optional<std::string>(const code_points&)>;

/// Up to this count, rules are as cheap as a counted expression.
constexpr int few = 16;
/// A repetition count above most_counted, or an expression with more than most_characters
/// characters when its counts are written out, would take more states than one automaton should
/// have.
constexpr int most_counted = 1024;
constexpr std::int64_t most_characters = 4096;

int count_of(const regex_node& node) {
  return std::max(node.min, node.max);
}

/// Returns the number of characters of the expression with its counts written out.
std::int64_t n_characters(const regex_node& node) {
  std::int64_t n = node.kind == node_kind::chars ? 1 : 0;
  for (const auto& part : node.parts)
    n = std::min(n + n_characters(part), most_characters + 1);
  return node.kind == node_kind::repeat ? n * std::max(count_of(node), 1) : n;
}

bool counts_characters(const regex_node& node) {
  if (node.kind == node_kind::repeat && node.parts[0].kind == node_kind::chars)
    return count_of(node) > few;
  return std::any_of(node.parts.begin(), node.parts.end(), counts_characters);
}

std::optional<std::string> written(const regex_node& node, const unit_text& unit) {
  switch (node.kind) {
  case node_kind::empty:
    return "";
  case node_kind::chars:
    return unit(node.chars);
  case node_kind::sequence:
  case node_kind::choice: {
    const bool is_choice = node.kind == node_kind::choice;
    std::string out;
    for (std::size_t i = 0; i < node.parts.size(); ++i) {
      const auto part = written(node.parts[i], unit);
      if (!part) return std::nullopt;
      out += (is_choice && i > 0 ? "|" : "") + *part;
    }
    return is_choice ? "(" + out + ")" : out;
  }
  case node_kind::repeat: {
    const auto& inner = node.parts[0];
    const int most = inner.kind == node_kind::chars ? most_counted : few;
    const bool again = most == few && node.max != 1 && counts_characters(inner);
    if (count_of(node) > most || again) return std::nullopt;
    const auto part = written(inner, unit);
    if (!part) return std::nullopt;
    return node.max == 0 ? "" : regex_repeat("(" + *part + ")", node.min, node.max);
  }
  default:
    return std::nullopt;
  }
}

} // namespace

std::string regex_repeat(const std::string& unit, std::int64_t min, std::int64_t max) {
  // XGrammar writes out up to 128 repetitions as states of the automaton, but makes a separate rule
  // for a larger count. Larger counts are therefore split into blocks of 128, so that one automaton
  // matches the whole expression.
  constexpr std::int64_t block = 128;
  const auto times = [&](std::int64_t from, std::int64_t to) {
    return unit + "{" + std::to_string(from) + "," + (to < 0 ? "" : std::to_string(to)) + "}";
  };
  std::string out;
  while (min > block) {
    out += times(block, block);
    min -= block;
    if (max >= 0) max -= block;
  }
  if (max <= block) return out + times(min, max);
  return out + "(" + times(min, block - 1) + "|" + times(block, block) +
         regex_repeat(unit, 0, max - block) + ")";
}

std::optional<std::string> counting_regex(const regex_node& node, const unit_text& unit) {
  if (!counts_characters(node) || n_characters(node) > most_characters) return std::nullopt;
  return written(node, unit);
}

} // namespace twill::models::grammar
