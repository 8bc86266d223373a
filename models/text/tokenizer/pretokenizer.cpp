#include "models/text/tokenizer/pretokenizer.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "models/text/tokenizer/unicode.hpp"

namespace twill::models {
namespace {

std::ptrdiff_t character_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

struct part {
  std::size_t begin, end;
  bool matched;
};

/// Lists the matches and the ranges between them, in order; together they cover `size` bytes.
void cover(const match_list& matches, std::size_t size, bool invert, std::vector<part>& parts) {
  parts.clear();
  std::size_t done = 0;
  for (const auto& [begin, end] : matches) {
    if (begin > done) parts.push_back({done, begin, invert});
    parts.push_back({begin, end, !invert});
    done = end;
  }
  if (done < size) parts.push_back({done, size, invert});
}

/// Joins each match with one neighbour, as `behavior` says.
void join(std::vector<part>& parts, match_behavior behavior) {
  std::vector<part> kept;
  kept.reserve(parts.size());
  bool after_match = false;
  const auto join_forward = [&](const part& p) {
    if (p.matched && !after_match && !kept.empty())
      kept.back().end = p.end;
    else
      kept.push_back(p);
    after_match = p.matched;
  };
  const auto join_backward = [&](const part& p) {
    if (p.matched && !after_match && !kept.empty())
      kept.back().begin = p.begin;
    else
      kept.push_back(p);
    after_match = p.matched;
  };
  const auto join_equal = [&](const part& p) {
    if (!kept.empty() && kept.back().matched == p.matched)
      kept.back().end = p.end;
    else
      kept.push_back(p);
  };
  switch (behavior) {
  case match_behavior::isolated:
    return;
  case match_behavior::removed:
    std::erase_if(parts, [](const part& p) { return p.matched; });
    return;
  case match_behavior::contiguous:
    std::for_each(parts.begin(), parts.end(), join_equal);
    break;
  case match_behavior::merged_with_previous:
    std::for_each(parts.begin(), parts.end(), join_forward);
    break;
  case match_behavior::merged_with_next:
    std::for_each(parts.rbegin(), parts.rend(), join_backward);
    std::reverse(kept.begin(), kept.end());
    break;
  }
  parts.swap(kept);
}

/// Cuts `word` before each `mark`, except a mark at the very beginning.
void split_before(std::string_view word, std::string_view mark,
                  std::vector<std::string_view>& out) {
  std::size_t begin = 0;
  for (std::size_t at = word.find(mark, 0); at != std::string_view::npos;
       at = word.find(mark, at + mark.size())) {
    if (at > begin) out.push_back(word.substr(begin, at - begin));
    begin = at;
  }
  if (begin < word.size()) out.push_back(word.substr(begin));
}

std::string replace_spaces(std::string_view word, const std::string& mark, bool in_front) {
  std::string text;
  const auto n_spaces = static_cast<std::size_t>(std::count(word.begin(), word.end(), ' '));
  text.reserve(word.size() + (n_spaces + 1) * mark.size());
  const bool has_mark = word.starts_with(mark) || word.starts_with(' ');
  if (in_front && !has_mark) text += mark;
  for (const char c : word)
    c == ' ' ? text.append(mark) : text.append(1, c);
  return text;
}

} // namespace

split_rule split_by(std::shared_ptr<const regex> expression, match_behavior behavior, bool invert) {
  return [expression = std::move(expression), behavior, invert](word_list& list,
                                                                bool) -> result<nothing> {
    regex::finder finder(*expression);
    match_list matches;
    std::vector<part> parts;
    std::vector<std::string_view> next;
    for (const std::string_view word : list.words) {
      if (auto found = finder.find_all(word, matches); !found.ok()) return found;
      cover(matches, word.size(), invert, parts);
      join(parts, behavior);
      for (const part& p : parts)
        if (p.end > p.begin) next.push_back(word.substr(p.begin, p.end - p.begin));
    }
    list.words.swap(next);
    return nothing{};
  };
}

split_rule split_in_threes(std::shared_ptr<const regex> expression) {
  return [expression = std::move(expression)](word_list& list, bool) -> result<nothing> {
    regex::finder finder(*expression);
    match_list matches;
    std::vector<std::string_view> next;
    for (const std::string_view word : list.words) {
      if (auto found = finder.find_all(word, matches); !found.ok()) return found;
      std::size_t done = 0;
      for (const auto& [begin, end] : matches) {
        auto n = character_count(word.substr(begin, end - begin));
        for (std::size_t at = begin; n > 0; at += character_length(word[at]), --n) {
          if (n % 3 != 0 || at == done) continue;
          next.push_back(word.substr(done, at - done));
          done = at;
        }
      }
      next.push_back(word.substr(done));
    }
    list.words.swap(next);
    return nothing{};
  };
}

split_rule space_in_front() {
  return [](word_list& list, bool) -> result<nothing> {
    for (std::string_view& word : list.words)
      if (!word.starts_with(' ')) word = list.memory.emplace_back(std::string(1, ' ').append(word));
    return nothing{};
  };
}

split_rule metaspace(std::string mark, metaspace_prefix prefix, bool split) {
  return
      [mark = std::move(mark), prefix, split](word_list& list, bool at_start) -> result<nothing> {
        std::vector<std::string_view> next;
        bool first = at_start;
        for (const std::string_view word : list.words) {
          const bool in_front =
              prefix == metaspace_prefix::always || (prefix == metaspace_prefix::first && first);
          first = false;
          const std::string& text = list.memory.emplace_back(replace_spaces(word, mark, in_front));
          if (split)
            split_before(text, mark, next);
          else
            next.push_back(text);
        }
        list.words.swap(next);
        return nothing{};
      };
}

split_rule dummy_prefix(std::string mark) {
  return [mark = std::move(mark)](word_list& list, bool at_start) -> result<nothing> {
    if (at_start && !list.words.empty())
      list.words.front() = list.memory.emplace_back(std::string(mark).append(list.words.front()));
    return nothing{};
  };
}

result<pretokenizer> pretokenizer::from_steps(const std::vector<split_step>& steps) {
  std::vector<split_rule> rules;
  for (const split_step& step : steps) {
    auto compiled = regex::make(step.expression);
    if (!compiled.ok()) return compiled.error();
    rules.push_back(step.in_threes
                        ? split_in_threes(std::move(compiled).value())
                        : split_by(std::move(compiled).value(), match_behavior::isolated, false));
  }
  return pretokenizer(std::move(rules));
}

result<nothing> pretokenizer::split(std::string_view text, bool at_start, word_list& list) const {
  list.words.clear();
  list.memory.clear();
  if (text.empty()) return nothing{};
  list.words.push_back(text);
  return split_words(list, at_start);
}

result<nothing> pretokenizer::split_words(word_list& list, bool at_start) const {
  for (const split_rule& rule : rules_)
    if (auto done = rule(list, at_start); !done.ok()) return done;
  return nothing{};
}

} // namespace twill::models
