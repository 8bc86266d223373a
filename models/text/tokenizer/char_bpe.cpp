#include "models/text/tokenizer/char_bpe.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "models/text/tokenizer/neighbour_set.hpp"
#include "models/text/tokenizer/unicode.hpp"
#include "models/text/tokenizer/word_cache.hpp"

namespace twill::models {
namespace {

class char_bpe final : public word_model {
public:
  explicit char_bpe(char_bpe_parts parts) : parts_(std::move(parts)), neighbours_(parts_.joined) {
    parts_.joined = {};
    ascii_.fill(-1);
    for (char c = 1; c > 0; ++c)
      ascii_[static_cast<std::size_t>(c)] = look_up(std::string_view(&c, 1));
  }

  result<nothing> encode(const std::vector<std::string_view>& words,
                         std::vector<token_id>& ids) const override {
    std::vector<std::string_view> pieces;
    for (const std::string_view word : words)
      cut(word, pieces);
    word_cache cache(pieces.size());
    std::vector<token_id> symbols;
    for (const std::string_view piece : pieces)
      cache.append(piece, ids, [&](std::string_view p, std::vector<token_id>& out) {
        encode_piece(p, symbols, out);
      });
    return nothing{};
  }

private:
  static constexpr token_id none = -1;

  token_id look_up(std::string_view character) const {
    if (const auto it = parts_.tokens.find(character); it != parts_.tokens.end()) return it->second;
    if (const auto it = parts_.extra_characters.find(character);
        it != parts_.extra_characters.end())
      return it->second;
    return none;
  }
  token_id symbol_of(std::string_view character) const {
    const auto byte = static_cast<std::uint8_t>(character.front());
    return byte != 0 && byte < 0x80 ? ascii_[byte] : look_up(character);
  }

  void cut(std::string_view word, std::vector<std::string_view>& pieces) const {
    if (!parts_.cut || (parts_.ignore_merges && parts_.tokens.contains(word))) {
      pieces.push_back(word);
      return;
    }
    std::size_t begin = 0, at = 0;
    while (at < word.size()) {
      const std::size_t middle = at + character_length(word[at]);
      if (middle >= word.size()) break;
      const std::size_t end = middle + character_length(word[middle]);
      if (!neighbours_.has(word, at, middle, end) && !may_fuse(word, at, middle, end)) {
        pieces.push_back(word.substr(begin, middle - begin));
        begin = middle;
      }
      at = middle;
    }
    pieces.push_back(word.substr(begin));
  }

  /// Two unknown characters that become one token must not be separated.
  bool may_fuse(std::string_view word, std::size_t at, std::size_t middle, std::size_t end) const {
    return parts_.fuse_unknown && symbol_of(word.substr(at, middle - at)) == none &&
           symbol_of(word.substr(middle, end - middle)) == none;
  }

  void encode_piece(std::string_view piece, std::vector<token_id>& symbols,
                    std::vector<token_id>& ids) const {
    if (parts_.ignore_merges) {
      if (const auto whole = parts_.tokens.find(piece); whole != parts_.tokens.end()) {
        ids.push_back(whole->second);
        return;
      }
    }
    symbols.clear();
    bool after_unknown = false;
    for (std::size_t at = 0, next = 0; at < piece.size(); at = next) {
      next = at + character_length(piece[at]);
      const std::string_view character = piece.substr(at, next - at);
      const token_id id = symbol_of(character);
      if (id != none)
        symbols.push_back(id);
      else
        add_unknown(character, after_unknown, symbols);
      after_unknown = id == none;
    }
    parts_.merges.merge(symbols);
    for (const token_id id : symbols)
      if (id < parts_.first_extra)
        ids.push_back(id);
      else
        add_unknown(extra_text(id), false, ids);
  }

  std::string_view extra_text(token_id id) const {
    return parts_.extra_texts[static_cast<std::size_t>(id - parts_.first_extra)];
  }

  void add_unknown(std::string_view character, bool after_unknown,
                   std::vector<token_id>& out) const {
    const auto byte_id = [this](char c) { return parts_.byte_ids[static_cast<std::uint8_t>(c)]; };
    if (parts_.byte_fallback &&
        std::all_of(character.begin(), character.end(), [&](char c) { return byte_id(c) >= 0; })) {
      for (const char c : character)
        out.push_back(byte_id(c));
      return;
    }
    if (parts_.unknown >= 0 && !(parts_.fuse_unknown && after_unknown))
      out.push_back(parts_.unknown);
  }

  char_bpe_parts parts_;
  neighbour_set neighbours_;
  std::array<token_id, 128> ascii_;
};

} // namespace

int byte_of_token(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const std::size_t high = digits.find(text[3]), low = digits.find(text[4]);
  return high == digits.npos || low == digits.npos ? -1 : static_cast<int>(high * 16 + low);
}

std::string spaces_for_marks(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool is_mark = text.starts_with(space_mark);
    out.push_back(is_mark ? ' ' : text.front());
    text.remove_prefix(is_mark ? space_mark.size() : 1);
  }
  return out;
}

std::unique_ptr<const word_model> make_char_bpe(char_bpe_parts parts) {
  return std::make_unique<char_bpe>(std::move(parts));
}

void add_score_merges(const std::vector<std::string>& texts, const std::vector<float>& scores,
                      const std::vector<bool>& usable, char_bpe_parts& parts) {
  constexpr std::size_t max_bytes = 4096; // the longest token that merging makes
  std::vector<float> order(scores);
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  parts.first_extra = static_cast<token_id>(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (usable[i]) parts.tokens.try_emplace(texts[i], static_cast<token_id>(i));

  struct rule {
    token_id left, right;
    std::int32_t rank;
    token_id merged;
  };
  std::vector<rule> rules;
  const auto half = [&](std::string_view text) -> token_id {
    if (const auto it = parts.tokens.find(text); it != parts.tokens.end()) return it->second;
    if (character_length(text.front()) != text.size()) return -1;
    const auto next = static_cast<token_id>(parts.first_extra + parts.extra_texts.size());
    const auto [it, is_new] = parts.extra_characters.try_emplace(std::string(text), next);
    if (is_new) parts.extra_texts.emplace_back(text);
    return it->second;
  };
  for (const auto& [text, id] : parts.tokens) {
    parts.joined.push_back(text);
    if (text.size() > max_bytes) continue;
    const auto rank = std::lower_bound(order.begin(), order.end(),
                                       scores[static_cast<std::size_t>(id)], std::greater<>()) -
                      order.begin();
    for (std::size_t at = character_length(text[0]); at < text.size();
         at += character_length(text[at])) {
      const std::string_view whole = text;
      const token_id left = half(whole.substr(0, at));
      if (left < 0) continue;
      const token_id right = half(whole.substr(at));
      if (right >= 0) rules.push_back({left, right, static_cast<std::int32_t>(rank), id});
    }
  }
  parts.merges = bpe(rules.size());
  for (const rule& r : rules)
    parts.merges.add_merge(r.left, r.right, r.rank, r.merged);
}

} // namespace twill::models
