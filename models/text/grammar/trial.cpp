#include "models/text/grammar/trial.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "models/text/grammar/matcher.hpp"
#include "models/text/grammar/xgrammar_parts.hpp"

namespace twill::models::grammar {
namespace {

constexpr int n_walks = 4, n_tokens = 192;
constexpr std::chrono::milliseconds enough{1000}; ///< of processor time for all walks together

/// Returns the tokens that a mask allows and that have bytes; tokens that end an answer have none.
std::vector<token_id> allowed(const std::vector<std::int32_t>& mask, const vocabulary& tokens) {
  std::vector<token_id> all;
  for (std::size_t i = 0; i < mask.size(); ++i)
    for (auto word = static_cast<std::uint32_t>(mask[i]); word != 0; word &= word - 1) {
      const auto id = static_cast<token_id>(i * 32 + static_cast<unsigned>(std::countr_zero(word)));
      if (id < tokens.size() && !tokens.bytes[static_cast<std::size_t>(id)].empty())
        all.push_back(id);
    }
  return all;
}

} // namespace

std::chrono::nanoseconds thread_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::optional<failure> try_masks(const compiled_grammar_ptr& grammar) {
  const vocabulary& tokens = *grammar->tokens;
  std::vector<std::int32_t> mask(mask_words(tokens.size()));
  const auto began = thread_time();
  for (unsigned walk = 0; walk < n_walks; ++walk) {
    std::mt19937 random(walk);
    matcher at(grammar);
    token_id next = -1;
    for (int i = 0; i < n_tokens && thread_time() - began < enough; ++i) {
      const auto before = thread_time();
      if (next >= 0 && !at.accept(next)) break;
      if (at.is_terminated()) break;
      at.fill_next_mask(mask);
      if (const auto took = thread_time() - before; took > most_mask_time)
        return failure{
            errc::too_large,
            "the grammar is ambiguous, so that one mask of allowed tokens takes " +
                std::to_string(std::chrono::ceil<std::chrono::milliseconds>(took).count()) +
                " ms of processor time; it may take " + std::to_string(most_mask_time.count()) +
                " ms: repeat no part that is itself repeated or may be empty"};
      if (i == 0 && std::all_of(mask.begin(), mask.end(), [](auto word) { return word == 0; }))
        return failure{errc::unsatisfiable,
                       "the grammar takes no text: one of its rules never ends; give it a case "
                       "without itself"};
      const auto choice = allowed(mask, tokens);
      if (choice.empty()) break;
      // Each walk generates one random text. In every second text, one step in four prefers tokens
      // that end strings or values, so that the text reaches further parts of the grammar.
      std::vector<token_id> marks;
      if (walk % 2 == 1 && random() % 4 == 0)
        for (const token_id id : choice)
          if (tokens.bytes[static_cast<std::size_t>(id)].find_first_of("\"]},") !=
              std::string::npos)
            marks.push_back(id);
      const auto& from = marks.empty() ? choice : marks;
      next = from[random() % from.size()];
    }
  }
  return std::nullopt;
}

} // namespace twill::models::grammar
