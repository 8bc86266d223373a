// The BPE and unigram models and the matcher of special tokens, compared with naive programs that
// try every possibility: all segmentations, one merge after the other, each special token at each
// position.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tokenizer/bpe.hpp"
#include "models/text/tokenizer/byte_bpe.hpp"
#include "models/text/tokenizer/char_bpe.hpp"
#include "models/text/tokenizer/special_matcher.hpp"
#include "models/text/tokenizer/unigram.hpp"
#include "models/text/tokenizer/word_cache.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/folder_text.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::models;
using namespace twill::test;

namespace {

using ids_t = std::vector<token_id>;

/// Up to `most` characters of few kinds, so that texts repeat themselves.
std::vector<std::string> characters(std::uint32_t n, std::uint32_t most) {
  static const char* const kinds[] = {"a", "b", "a", "\xC3\xA9", "b", " ", "<", "x"};
  std::vector<std::string> out;
  for (std::uint32_t left = n % (most + 1), state = n; left > 0; --left) {
    state = state * 1664525U + 1013904223U;
    out.emplace_back(kinds[state >> 29]);
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts)
    out += part;
  return out;
}

std::string letters(std::uint32_t n, std::uint32_t most) {
  return joined(characters(n, most));
}

std::string written(const ids_t& ids) {
  std::string out;
  for (const token_id id : ids)
    out += std::to_string(id) + " ";
  return out;
}

void demand_ids(const ids_t& is, const ids_t& expected, const std::string& what) {
  demand(is == expected, what + " is " + written(is) + ", expected " + written(expected));
}

/// Words that are encoded at once, some repeated and cached, get the ids of each word alone.
template <class Naive>
void compare_words(const word_model& model, const operations& sequence, std::uint32_t longest,
                   const Naive& naive) {
  std::vector<std::string> words;
  for (const operation& op : sequence)
    for (const std::uint32_t n : {op.a, op.b, op.c, op.a / 3})
      if (std::string word = letters(n, longest); !word.empty()) words.push_back(std::move(word));
  // The words follow each other in memory, as the words of one text do.
  const std::string text = joined(words);
  std::vector<std::string_view> views;
  ids_t expected, is;
  for (int round = 0; round < 2; ++round) {
    std::size_t begin = 0;
    for (const std::string& word : words) {
      views.push_back(std::string_view(text).substr(begin, word.size()));
      begin += word.size();
      const ids_t one = naive(word);
      expected.insert(expected.end(), one.begin(), one.end());
      ids_t alone;
      demand(model.encode({word}, alone).ok(), "encodes");
      demand_ids(alone, one, "\"" + word + "\"");
    }
  }
  demand(model.encode(views, is).ok(), "encodes");
  demand_ids(is, expected, "all words together");
}

// Unigram.

std::vector<std::string> split_characters(std::string_view text) {
  std::vector<std::string> out;
  for (const char c : text)
    if ((static_cast<std::uint8_t>(c) & 0xC0) == 0x80)
      out.back() += c;
    else
      out.emplace_back(1, c);
  return out;
}

/// Tries all segmentations. Among those with equal scores it takes the one whose last piece is
/// longest, then whose last piece but one is longest, and so on, as the tokenizers library does.
class naive_unigram {
public:
  explicit naive_unigram(const unigram_parts& parts) : parts_(parts) {
    for (const auto& [text, score] : parts.pieces)
      least_ = std::min(least_, score);
  }

  ids_t operator()(std::string_view word) {
    word_ = split_characters(word);
    best_score_ = -std::numeric_limits<double>::infinity();
    path_.clear();
    try_from(word_.size(), 0);
    std::reverse(best_.begin(), best_.end());
    return to_ids();
  }

private:
  struct piece {
    std::string text;
    token_id id; ///< -1: an unknown character
  };

  token_id find(const std::string& text) const {
    for (std::size_t i = 0; i < parts_.pieces.size(); ++i)
      if (static_cast<token_id>(i) != parts_.unknown && parts_.pieces[i].first == text)
        return static_cast<token_id>(i);
    return -1;
  }

  /// Tries each piece that ends at `end`, the longest first, with all cuts of the text before it.
  void try_from(std::size_t end, double score) {
    if (end == 0) {
      if (score > best_score_) best_score_ = score, best_ = path_;
      return;
    }
    for (std::size_t begin = 0; begin < end; ++begin) {
      std::string text;
      for (std::size_t i = begin; i < end; ++i)
        text += word_[i];
      const token_id id = find(text);
      if (id < 0 && end - begin > 1) continue;
      path_.push_back({text, id});
      try_from(begin,
               score + (id < 0 ? least_ - 10 : parts_.pieces[static_cast<std::size_t>(id)].second));
      path_.pop_back();
    }
  }

  ids_t to_ids() const {
    ids_t ids;
    for (std::size_t i = 0; i < best_.size();) {
      if (best_[i].id >= 0) {
        ids.push_back(best_[i++].id);
        continue;
      }
      std::string run;
      for (; i < best_.size() && best_[i].id < 0; ++i)
        run += best_[i].text;
      ids_t bytes;
      for (const char c : run) {
        token_id found = -1;
        for (std::size_t k = 0; k < parts_.pieces.size(); ++k)
          if (byte_of_token(parts_.pieces[k].first) == static_cast<std::uint8_t>(c))
            found = static_cast<token_id>(k);
        if (found >= 0) bytes.push_back(found);
      }
      if (parts_.byte_fallback && bytes.size() == run.size())
        ids.insert(ids.end(), bytes.begin(), bytes.end());
      else if (parts_.unknown >= 0)
        ids.push_back(parts_.unknown);
    }
    return ids;
  }

  const unigram_parts& parts_;
  double least_ = 0;
  std::vector<std::string> word_;
  std::vector<piece> path_, best_; ///< from the last piece to the first
  double best_score_ = 0;
};

void play_unigram(const operations& sequence) {
  if (sequence.size() < 2) return;
  unigram_parts parts;
  const operation& setup = sequence.front();
  if (setup.a % 3 != 0) parts.pieces.emplace_back("<unk>", 0), parts.unknown = 0;
  parts.byte_fallback = setup.b % 2 == 0;
  for (const char* byte : {"<0x78>", "<0xC3>", "<0xA9>", "<0x61>"})
    if ((setup.c >> (parts.pieces.size() % 8) & 1) != 0) parts.pieces.emplace_back(byte, -9);
  for (std::size_t i = 1; i < sequence.size() && i < 14; ++i)
    if (std::string text = letters(sequence[i].kind, 4); !text.empty())
      parts.pieces.emplace_back(std::move(text), -0.5 * (sequence[i].a % 5));
  naive_unigram naive(parts);
  operations few(
      sequence.begin() + 1,
      sequence.begin() + 1 +
          std::min<std::ptrdiff_t>(20, static_cast<std::ptrdiff_t>(sequence.size()) - 1));
  compare_words(*make_unigram(parts), few, 8, [&](const std::string& word) { return naive(word); });
}

// Byte pairs.

struct naive_merge {
  token_id left, right;
  std::int32_t rank;
  token_id merged;
};

/// Merges the leftmost of the pairs with the lowest rank until no pair is left.
ids_t merge_naively(ids_t symbols, const std::vector<naive_merge>& merges) {
  for (;;) {
    const naive_merge* best = nullptr;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      for (const naive_merge& m : merges) {
        if (m.left != symbols[i] || m.right != symbols[i + 1]) continue;
        if (best == nullptr || m.rank < best->rank) best = &m, at = i;
        break; // of two merges of one pair the first counts
      }
    if (best == nullptr) return symbols;
    symbols[at] = best->merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

/// Merges of the tokens 0 to 3 and of the results of other merges. If `trained`, ranks rise with
/// the ids; otherwise ranks are arbitrary and may be equal.
std::vector<naive_merge> make_merges(const operations& sequence, bool trained) {
  std::vector<naive_merge> merges;
  for (const operation& op : sequence) {
    const auto n = static_cast<token_id>(4 + merges.size());
    const token_id below = merges.size() < 3 ? 4 : n;
    const auto rank = static_cast<std::int32_t>(trained ? merges.size() : op.c % 6);
    merges.push_back({static_cast<token_id>(op.a % static_cast<std::uint32_t>(below)),
                      static_cast<token_id>(op.b % static_cast<std::uint32_t>(below)), rank, n});
    if (merges.size() == 12) break;
  }
  return merges;
}

bpe to_bpe(const std::vector<naive_merge>& merges) {
  bpe made(merges.size());
  for (const naive_merge& m : merges)
    made.add_merge(m.left, m.right, m.rank, m.merged);
  return made;
}

ids_t random_symbols(std::uint32_t seed, std::size_t n) {
  ids_t symbols;
  const unsigned n_kinds = 2 + seed % 3;
  for (; symbols.size() < n;) {
    seed = seed * 1664525U + 1013904223U;
    symbols.push_back(static_cast<token_id>((seed >> 16) % n_kinds));
  }
  return symbols;
}

void compare_merges(const operations& sequence, std::size_t n_symbols) {
  if (sequence.empty()) return;
  const operation& setup = sequence.front();
  const auto merges = make_merges(sequence, setup.kind % 2 == 0);
  ids_t symbols = random_symbols(setup.c, n_symbols);
  const ids_t expected = merge_naively(symbols, merges);
  to_bpe(merges).merge(symbols);
  demand_ids(symbols, expected, std::to_string(n_symbols) + " symbols");
}

void play_short_merges(const operations& sequence) {
  for (const std::size_t n : {0, 1, 2, 3, 5, 9, 17, 47, 48, 49, 50, 90})
    compare_merges(sequence, n);
}

void play_huge_merges(const operations& sequence) {
  // Parts of 40 symbols lie between cuts, so that the naive program can merge each part alone.
  if (sequence.empty()) return;
  const auto merges = make_merges(sequence, sequence.front().kind % 2 == 0);
  constexpr token_id cut = 1000; // a symbol that is in no merge
  ids_t symbols, expected;
  for (std::uint32_t part = 0; symbols.size() < 8190 + sequence.front().b % 5; ++part) {
    const ids_t some = random_symbols(sequence.front().c + part % 7, 40);
    const ids_t merged = merge_naively(some, merges);
    symbols.insert(symbols.end(), some.begin(), some.end());
    expected.insert(expected.end(), merged.begin(), merged.end());
    symbols.push_back(cut), expected.push_back(cut);
  }
  to_bpe(merges).merge(symbols);
  demand(symbols == expected, "a huge word merges like its parts");
}

void play_bytes(const operations& sequence) {
  if (sequence.empty()) return;
  const operation& setup = sequence.front();
  byte_bpe_parts parts;
  parts.byte_ids.fill(-1);
  const std::string known = "ab \xC3";
  for (std::size_t i = 0; i < known.size(); ++i)
    parts.byte_ids[static_cast<std::uint8_t>(known[i])] = static_cast<token_id>(i);
  const auto merges = make_merges(sequence, setup.kind % 2 == 0);
  parts.merges = to_bpe(merges);
  parts.ignore_merges = setup.a % 2 == 0;
  parts.unknown = setup.b % 3 == 0 ? -1 : static_cast<token_id>(setup.b % 5);
  const std::string whole = letters(setup.c, 6);
  parts.words.emplace(whole, 500);
  const byte_bpe_parts copy = parts;
  compare_words(*make_byte_bpe(std::move(parts)), sequence, 12, [&](const std::string& word) {
    if (copy.ignore_merges && word == whole) return ids_t{500};
    ids_t symbols;
    for (const char c : word) {
      const std::size_t at = known.find(c);
      const token_id id = at == known.npos ? copy.unknown : static_cast<token_id>(at);
      if (id >= 0) symbols.push_back(id);
    }
    return merge_naively(std::move(symbols), merges);
  });
}

/// SentencePiece's merging: neighbours whose union is a token, the highest score first.
void play_scores(const operations& sequence) {
  if (sequence.empty()) return;
  const operation& setup = sequence.front();
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<bool> usable;
  for (const operation& op : sequence) {
    std::string text = letters(op.kind, 4);
    if (text.empty()) text = "x";
    texts.push_back(std::move(text));
    scores.push_back(-0.5F * static_cast<float>(op.a % 6));
    usable.push_back(op.b % 5 != 0);
    if (texts.size() == 16) break;
  }
  char_bpe_parts parts;
  parts.byte_ids.fill(-1);
  const auto add_unusable = [&](const char* text) {
    texts.emplace_back(text);
    scores.push_back(0);
    usable.push_back(false);
    return static_cast<token_id>(texts.size() - 1);
  };
  for (const char c : std::string(setup.b % 2 == 0 ? "x\xC3\xA9" : "x\xC3"))
    parts.byte_ids[static_cast<std::uint8_t>(c)] = add_unusable("<byte>");
  parts.byte_fallback = setup.c % 3 != 0;
  parts.unknown = add_unusable("<unk>");
  const auto bytes = parts.byte_ids;
  const bool fallback = parts.byte_fallback;
  const token_id unknown = parts.unknown;
  add_score_merges(texts, scores, usable, parts);
  const auto find = [&](const std::string& text) -> token_id {
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (usable[i] && texts[i] == text) return static_cast<token_id>(i);
    return -1;
  };
  compare_words(*make_char_bpe(std::move(parts)), sequence, 14, [&](const std::string& word) {
    auto symbols = split_characters(word);
    for (;;) {
      token_id best = -1;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
        if (const token_id id = find(symbols[i] + symbols[i + 1]); id >= 0)
          if (best < 0 ||
              scores[static_cast<std::size_t>(id)] > scores[static_cast<std::size_t>(best)])
            best = id, at = i;
      if (best < 0) break;
      symbols[at] += symbols[at + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    ids_t ids;
    for (const std::string& symbol : symbols) {
      const token_id id = find(symbol);
      const bool has_bytes = fallback && std::all_of(symbol.begin(), symbol.end(), [&](char c) {
                               return bytes[static_cast<std::uint8_t>(c)] >= 0;
                             });
      if (id >= 0)
        ids.push_back(id);
      else if (has_bytes)
        for (const char c : symbol)
          ids.push_back(bytes[static_cast<std::uint8_t>(c)]);
      else
        ids.push_back(unknown);
    }
    return ids;
  });
}

// Special tokens.

struct naive_special {
  std::string text;
  token_id id;
  special_class kind;
  special_rules rules;
};

bool is_word_at(const std::string& text, std::size_t at) {
  return text[at] == 'a' || text[at] == 'b' || text[at] == 'x' || (text[at] & 0x80) != 0;
}

std::optional<special_matcher::match> find_naively(const std::vector<naive_special>& entries,
                                                   const std::string& text, std::size_t from,
                                                   unsigned classes, const byte_ranges& literal) {
  for (std::size_t at = from; at < text.size(); ++at) {
    const naive_special* best = nullptr;
    for (const naive_special& entry : entries) {
      const std::size_t end = at + entry.text.size();
      if (text.compare(at, entry.text.size(), entry.text) != 0) continue;
      if ((entry.kind & classes) == 0) continue;
      const bool overlaps = std::any_of(literal.begin(), literal.end(), [&](const auto& range) {
        return range.first < end && range.second > at;
      });
      if (overlaps && entry.kind != special_plain) continue;
      if (best == nullptr || entry.text.size() > best->text.size()) best = &entry;
    }
    if (best == nullptr) continue;
    std::size_t begin = at, end = at + best->text.size();
    const bool beside =
        (begin > 0 && is_word_at(text, begin - 1)) || (end < text.size() && is_word_at(text, end));
    if (best->rules.single_word && beside) {
      at = end - 1;
      continue;
    }
    while (best->rules.lstrip && begin > from && text[begin - 1] == ' ')
      --begin;
    while (best->rules.rstrip && end < text.size() && text[end] == ' ')
      ++end;
    return special_matcher::match{begin, end, best->id, best->rules.joins};
  }
  return std::nullopt;
}

void play_specials(const operations& sequence) {
  if (sequence.size() < 2) return;
  std::vector<naive_special> entries;
  special_matcher matcher;
  for (std::size_t i = 0; i < sequence.size() && entries.size() < 8; ++i) {
    const operation& op = sequence[i];
    const std::string text = letters(op.a, 4);
    const auto kind = static_cast<special_class>(1U << (op.b % 3));
    const special_rules rules{op.c % 5 == 0, op.c % 3 == 0, op.c % 4 == 0, op.c % 2 == 0};
    matcher.add(text, static_cast<token_id>(i), kind, rules);
    const bool is_known = std::any_of(entries.begin(), entries.end(),
                                      [&](const auto& entry) { return entry.text == text; });
    if (!text.empty() && !is_known)
      entries.push_back({text, static_cast<token_id>(i), kind, rules});
  }
  for (const operation& op : sequence) {
    const std::string text = letters(op.kind, 24);
    byte_ranges literal;
    std::size_t at = op.b % 7;
    for (std::uint32_t n = op.c % 4, state = op.a; n > 0; --n, state /= 5) {
      const std::size_t begin = at + state % 5, end = begin + state / 3 % 4;
      if (end > text.size()) break;
      literal.emplace_back(begin, end);
      at = end + 1;
    }
    const unsigned classes = op.a % 8;
    for (std::size_t from = 0; from <= text.size(); ++from) {
      if (from < text.size() && (static_cast<std::uint8_t>(text[from]) & 0xC0) == 0x80) continue;
      const auto is = matcher.find(text, from, classes, literal);
      const auto expected = find_naively(entries, text, from, classes, literal);
      demand_equal(is.has_value(), expected.has_value(), "a match in \"" + text + "\"");
      if (!is) continue;
      demand_equal(is->begin, expected->begin, "the begin in \"" + text + "\"");
      demand_equal(is->end, expected->end, "the end in \"" + text + "\"");
      demand_equal(is->id, expected->id, "the token in \"" + text + "\"");
      demand_equal(is->joins, expected->joins, "whether it joins");
    }
  }
}

} // namespace

TEST_CASE("unigram takes the first of the best segmentations that trying all finds") {
  CHECK(first_failure({600, 10'000, 40}, play_unigram) == "");
}

TEST_CASE("unigram decides ties as the tokenizers library does", "[golden]") {
  const value file = read_json_file(golden_dir() + "/unigram_ties.json");
  for (const value& group : list_of(at(file, "groups"))) {
    unigram_parts parts;
    parts.unknown = 0;
    for (const value& piece : list_of(at(group, "pieces")))
      parts.pieces.emplace_back(text_of(list_of(piece).at(0)), *list_of(piece).at(1).as_double());
    const auto model = make_unigram(parts);
    for (const value& c : list_of(at(group, "cases"))) {
      const std::string& text = text_of(list_of(c).at(0));
      CAPTURE(text);
      ids_t ids;
      REQUIRE(model->encode({text}, ids).ok());
      CHECK(ids == token_ids(list_of(c).at(1)));
    }
  }
}

TEST_CASE("byte pairs merge as one by one, in short and long words") {
  CHECK(first_failure({1000, 30'000, 12}, play_short_merges) == "");
}

TEST_CASE("byte pairs merge as one by one, in huge words") {
  CHECK(first_failure({200, 3'000, 12}, play_huge_merges) == "");
}

TEST_CASE("a word's bytes merge as one by one, however often words repeat") {
  CHECK(first_failure({600, 20'000, 40}, play_bytes) == "");
}

TEST_CASE("characters merge by scores as one by one, however often words repeat") {
  CHECK(first_failure({600, 20'000, 40}, play_scores) == "");
}

TEST_CASE("cached words have their own ids, where words share their beginnings and entries") {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 300)
    text += random() % 2 == 0 ? 'a' : 'b';
  word_cache cache(64);
  ids_t ids, expected;
  const auto encode = [](std::string_view word, ids_t& out) {
    for (const char c : word)
      out.push_back(c);
  };
  for (int i = 0; i < 30'000; ++i) {
    const auto word = std::string_view(text).substr(random() % 290, 1 + random() % 9);
    cache.append(word, ids, encode);
    encode(word, expected);
  }
  CHECK((ids == expected));
}

TEST_CASE("special tokens are found as by looking for each at each place") {
  CHECK(first_failure({1000, 30'000, 40}, play_specials) == "");
}
