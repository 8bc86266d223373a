#include "models/text/tokenizer/unigram.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/unicode.hpp"
#include "models/text/tokenizer/word_cache.hpp"

namespace twill::models {
namespace {

constexpr token_id none = -1;

/// A trie of texts by their bytes; all edges are in one open-addressing table.
class trie {
public:
  explicit trie(std::size_t n_bytes) : edges_(std::bit_ceil(2 * n_bytes + 16)) {}

  void add(std::string_view text, token_id id) {
    std::uint32_t node = 0;
    for (const char c : text) {
      edge& e = edges_[slot(node, c)];
      if (e.to == 0) {
        e = {key(node, c), static_cast<std::uint32_t>(ids_.size())};
        ids_.push_back(none);
      }
      node = e.to;
    }
    if (ids_[node] == none) ids_[node] = id;
  }

  /// Returns the node at the end of edge `c` of `node`; 0 if there is no such edge.
  std::uint32_t next(std::uint32_t node, char c) const { return edges_[slot(node, c)].to; }
  token_id id(std::uint32_t node) const { return ids_[node]; }

private:
  struct edge {
    std::uint64_t key = 0;
    std::uint32_t to = 0;
  };
  static std::uint64_t key(std::uint32_t node, char c) {
    return std::uint64_t{node} << 8 | static_cast<std::uint8_t>(c);
  }
  std::size_t slot(std::uint32_t node, char c) const {
    const std::uint64_t k = key(node, c);
    const std::size_t mask = edges_.size() - 1;
    std::size_t at = static_cast<std::size_t>((k * 0x9E3779B97F4A7C15ULL) >> 24) & mask;
    while (edges_[at].to != 0 && edges_[at].key != k)
      at = (at + 1) & mask;
    return at;
  }

  std::vector<edge> edges_;
  std::vector<token_id> ids_{none};
};

class unigram final : public word_model {
public:
  explicit unigram(const unigram_parts& parts)
      : pieces_(count_bytes(parts)), unknown_(parts.unknown), byte_fallback_(parts.byte_fallback) {
    byte_ids_.fill(none);
    double least = 0;
    for (std::size_t i = 0; i < parts.pieces.size(); ++i) {
      const auto& [text, score] = parts.pieces[i];
      const auto id = static_cast<token_id>(i);
      if (id != unknown_) pieces_.add(text, id);
      if (const int byte = byte_of_token(text); byte >= 0)
        byte_ids_[static_cast<std::size_t>(byte)] = id;
      scores_.push_back(score);
      least = std::min(least, score);
    }
    constexpr double unknown_penalty = 10;
    unknown_score_ = least - unknown_penalty;
  }

  result<nothing> encode(const std::vector<std::string_view>& words,
                         std::vector<token_id>& ids) const override {
    word_cache cache(words.size());
    for (const std::string_view word : words)
      cache.append(word, ids,
                   [this](std::string_view w, std::vector<token_id>& out) { encode_word(w, out); });
    return nothing{};
  }

private:
  struct arrival { ///< the best way to reach a position
    double score = -std::numeric_limits<double>::infinity();
    std::size_t from = 0;
    token_id id = none; ///< none for an unknown character
  };

  static std::size_t count_bytes(const unigram_parts& parts) {
    std::size_t n = 0;
    for (const auto& [text, score] : parts.pieces)
      n += text.size();
    return n;
  }

  void encode_word(std::string_view word, std::vector<token_id>& ids) const {
    std::vector<arrival> best(word.size() + 1);
    best[0].score = 0;
    for (std::size_t at = 0; at < word.size(); at += character_length(word[at])) {
      const std::size_t next = at + character_length(word[at]);
      bool has_single = false;
      std::uint32_t node = 0;
      for (std::size_t end = at; end < word.size();) {
        node = pieces_.next(node, word[end++]);
        if (node == 0) break;
        const token_id id = pieces_.id(node);
        if (id == none) continue;
        has_single = has_single || end == next;
        offer(best[end], best[at].score + scores_[static_cast<std::size_t>(id)], at, id);
      }
      if (!has_single) offer(best[next], best[at].score + unknown_score_, at, none);
    }
    std::vector<std::pair<std::size_t, token_id>> path; // begin and id, backwards
    for (std::size_t at = word.size(); at > 0; at = best[at].from)
      path.emplace_back(best[at].from, best[at].id);
    std::reverse(path.begin(), path.end());
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (path[i].second != none) {
        ids.push_back(path[i].second);
        continue;
      }
      const std::size_t begin = path[i].first;
      while (i + 1 < path.size() && path[i + 1].second == none)
        ++i;
      const std::size_t end = i + 1 < path.size() ? path[i + 1].first : word.size();
      add_unknown(word.substr(begin, end - begin), ids);
    }
  }

  static void offer(arrival& to, double score, std::size_t from, token_id id) {
    if (score > to.score) to = {score, from, id};
  }

  void add_unknown(std::string_view text, std::vector<token_id>& ids) const {
    const auto byte_id = [this](char c) { return byte_ids_[static_cast<std::uint8_t>(c)]; };
    if (byte_fallback_ &&
        std::all_of(text.begin(), text.end(), [&](char c) { return byte_id(c) >= 0; })) {
      for (const char c : text)
        ids.push_back(byte_id(c));
    } else if (unknown_ >= 0) {
      ids.push_back(unknown_);
    }
  }

  trie pieces_;
  std::vector<double> scores_;
  std::array<token_id, 256> byte_ids_;
  token_id unknown_;
  bool byte_fallback_;
  double unknown_score_ = 0;
};

} // namespace

std::unique_ptr<const word_model> make_unigram(const unigram_parts& parts) {
  return std::make_unique<unigram>(parts);
}

} // namespace twill::models
