#include "models/tokenizer/special_matcher.hpp"

#include <algorithm>

namespace twill::models {
namespace {

std::uint64_t edge_key(std::uint32_t node, char c) {
  return std::uint64_t{node} << 8 | static_cast<std::uint8_t>(c);
}

} // namespace

special_matcher::special_matcher() {
  starts_.fill(false);
}

void special_matcher::add(std::string_view text, token_id id, special_class kind) {
  if (text.empty()) return;
  starts_[static_cast<std::uint8_t>(text.front())] = true;
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto [it, is_new] = edges_.try_emplace(edge_key(node, c), n_nodes_);
    if (is_new) ++n_nodes_;
    node = it->second;
  }
  ends_.try_emplace(node, entry{id, kind});
}

std::optional<special_matcher::match>
special_matcher::longest_at(std::string_view text, std::size_t begin, unsigned classes,
                            const byte_ranges& literal, std::size_t first_range) const {
  std::optional<match> best;
  std::uint32_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const auto edge = edges_.find(edge_key(node, text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    const auto end = ends_.find(node);
    if (end == ends_.end() || (end->second.kind & classes) == 0) continue;
    const bool touches = first_range < literal.size() && literal[first_range].first <= i;
    if (touches && end->second.kind == special_control) continue;
    best = match{begin, i + 1, end->second.id};
  }
  return best;
}

std::optional<special_matcher::match> special_matcher::find(std::string_view text, std::size_t from,
                                                            unsigned classes,
                                                            const byte_ranges& literal) const {
  // The first literal range that ends after the position; binary search keeps many calls cheap.
  auto range = static_cast<std::size_t>(
      std::partition_point(literal.begin(), literal.end(),
                           [from](const auto& r) { return r.second <= from; }) -
      literal.begin());
  for (std::size_t i = from; i < text.size(); ++i) {
    if (!starts_[static_cast<std::uint8_t>(text[i])]) continue;
    while (range < literal.size() && literal[range].second <= i)
      ++range;
    if (auto found = longest_at(text, i, classes, literal, range)) return found;
  }
  return std::nullopt;
}

} // namespace twill::models
