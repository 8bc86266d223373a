#include "models/text/tokenizer/special_matcher.hpp"

#include <algorithm>

#include "models/text/tokenizer/unicode.hpp"

namespace twill::models {
namespace {

std::uint64_t edge_key(std::uint32_t node, char c) {
  return std::uint64_t{node} << 8 | static_cast<std::uint8_t>(c);
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0) {
    std::size_t before = previous_character(text, begin);
    if (is_word(next_character(text, before))) return false;
  }
  return end == text.size() || !is_word(next_character(text, end));
}

std::size_t space_begin(std::string_view text, std::size_t from, std::size_t begin) {
  while (begin > from) {
    const std::size_t before = previous_character(text, begin);
    std::size_t at = before;
    if (!is_white_space(next_character(text, at))) break;
    begin = before;
  }
  return begin;
}

std::size_t space_end(std::string_view text, std::size_t end) {
  while (end < text.size()) {
    std::size_t after = end;
    if (!is_white_space(next_character(text, after))) break;
    end = after;
  }
  return end;
}

} // namespace

bool looks_like_markup(std::string_view text) {
  if (text.size() < 3) return false;
  return (text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']');
}

special_matcher::special_matcher() {
  starts_.fill(false);
}

void special_matcher::add(std::string_view text, token_id id, special_class kind,
                          special_rules rules) {
  if (text.empty()) return;
  starts_[static_cast<std::uint8_t>(text.front())] = true;
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto [it, is_new] = edges_.try_emplace(edge_key(node, c), n_nodes_);
    if (is_new) ++n_nodes_;
    node = it->second;
  }
  ends_.try_emplace(node, entry{id, kind, rules});
}

special_matcher::candidate special_matcher::longest_at(std::string_view text, std::size_t begin,
                                                       unsigned classes, const byte_ranges& literal,
                                                       std::size_t first_range) const {
  candidate best{begin, nullptr};
  std::uint32_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const auto edge = edges_.find(edge_key(node, text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    const auto end = ends_.find(node);
    if (end == ends_.end() || (end->second.kind & classes) == 0) continue;
    const bool touches = first_range < literal.size() && literal[first_range].first <= i;
    if (touches && end->second.kind != special_plain) continue;
    best = candidate{i + 1, &end->second};
  }
  return best;
}

std::optional<special_matcher::match> special_matcher::find(std::string_view text, std::size_t from,
                                                            unsigned classes,
                                                            const byte_ranges& literal) const {
  // A binary search finds the first literal range that ends after the position.
  auto range = static_cast<std::size_t>(
      std::partition_point(literal.begin(), literal.end(),
                           [from](const auto& r) { return r.second <= from; }) -
      literal.begin());
  for (std::size_t i = from; i < text.size(); ++i) {
    if (!starts_[static_cast<std::uint8_t>(text[i])]) continue;
    while (range < literal.size() && literal[range].second <= i)
      ++range;
    const candidate found = longest_at(text, i, classes, literal, range);
    if (found.what == nullptr) continue;
    const special_rules& rules = found.what->rules;
    if (rules.single_word && !stands_alone(text, i, found.end)) {
      i = found.end - 1;
      continue;
    }
    return match{rules.lstrip ? space_begin(text, from, i) : i,
                 rules.rstrip ? space_end(text, found.end) : found.end, found.what->id,
                 rules.joins};
  }
  return std::nullopt;
}

} // namespace twill::models
