// Three parts of a session, compared with plain references: stop_matcher finds stop strings as a
// search of the whole text does; newest_turns() keeps the chat turns that trying them one by one
// would keep; and score_memory, which limits the memory for scores of prompts, counts the sum of
// what all requests hold.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/kept_turns.hpp"
#include "actors/session/score_memory.hpp"
#include "actors/session/stop_matcher.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::actors;
using namespace twill::test;

namespace {

/// Up to `most` letters of two kinds, so that beginnings of stop strings often repeat.
std::string letters(std::uint32_t n, std::uint32_t most) {
  std::string out;
  for (std::uint32_t left = n % (most + 1); left > 0; --left) {
    n = n / 2 + 7919 * left;
    out += n % 2 == 0 ? 'a' : 'b';
  }
  return out;
}

struct stop_found {
  std::string stop;      ///< empty: none
  std::size_t begin = 0; ///< of the stop string in the text
};

/// The stop string that ends first in a text; the longest if several end there.
stop_found find_stop(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    stop_found best;
    for (const std::string& stop : stops)
      if (stop.size() > best.stop.size() && std::string(text, 0, end).ends_with(stop))
        best = {stop, end - stop.size()};
    if (!best.stop.empty()) return best;
  }
  return {};
}

/// The part of a text without a stop string that no later text can make part of a stop string.
std::string certain(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const std::string& stop : stops)
      if (stop.size() > text.size() - at && stop.starts_with(text.substr(at)))
        return text.substr(0, at);
  return text;
}

void play_stops(const operations& sequence) {
  if (sequence.empty()) return;
  const operation& setup = sequence.front();
  const std::vector<std::string> stops{letters(setup.a, 4), letters(setup.b, 4),
                                       letters(setup.c, 3)};
  const bool include = setup.kind % 2 == 0;
  stop_matcher matcher(stops, include);
  std::string out, before, text; // `before`: passed text, which no stop string may reach into
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    const operation& op = sequence[i];
    const std::string piece = letters(op.a, 4);
    if (op.kind % 16 == 0) {
      matcher.pass(piece, out);
      before += std::exchange(text, "") + piece;
      demand(out == before, "what was passed is \"" + out + "\", expected \"" + before + "\"");
      continue;
    }
    if (op.kind % 16 == 1) {
      matcher.flush(out);
      before += std::exchange(text, "");
      demand(out == before, "what was flushed is \"" + out + "\", expected \"" + before + "\"");
      continue;
    }
    text += piece;
    const auto found = find_stop(text, stops);
    demand_equal(matcher.push(piece, out), !found.stop.empty(), "whether a stop string was found");
    if (found.stop.empty()) {
      const std::string expected = before + certain(text, stops);
      demand(out == expected, "the text is \"" + out + "\", expected \"" + expected + "\"");
      continue;
    }
    demand(matcher.found() == found.stop, "the stop string is " + matcher.found());
    const std::string expected = before + text.substr(0, found.begin) + (include ? found.stop : "");
    demand(out == expected, "the text is \"" + out + "\", expected \"" + expected + "\"");
    matcher.flush(out);
    demand(out == expected, "nothing is left behind a stop string");
    return;
  }
}

/// Cuts a short text into pieces in every possible way.
void cut_everywhere(const operations& sequence) {
  for (const operation& op : sequence) {
    const std::string text = letters(op.kind, 9);
    const std::vector<std::string> stops{letters(op.a, 4), letters(op.b, 3)};
    const auto found = find_stop(text, stops);
    const bool include = op.c % 2 == 0;
    for (std::uint32_t cuts = 0; text.size() > 1 && cuts < 1U << (text.size() - 1); ++cuts) {
      stop_matcher matcher(stops, include);
      std::string out, piece;
      bool is_found = false;
      for (std::size_t i = 0; i < text.size() && !is_found; ++i) {
        piece += text[i];
        if (i + 1 < text.size() && (cuts >> i & 1) == 0) continue;
        is_found = matcher.push(std::exchange(piece, ""), out);
      }
      matcher.flush(out);
      std::string expected = text;
      if (!found.stop.empty()) expected = text.substr(0, found.begin) + (include ? found.stop : "");
      demand(out == expected, text + " comes as \"" + out + "\", expected \"" + expected + "\"");
    }
  }
}

// Turns.

value message(const char* role, std::size_t number) {
  return value_object{{"role", role}, {"content", std::to_string(number)}};
}

std::string written(const value_list& messages) {
  std::string out;
  for (const value& one : messages)
    out += *one.find("role")->as_string() + *one.find("content")->as_string() + " ";
  return out;
}

bool is(const value& message, const char* role) {
  return *message.find("role")->as_string() == role;
}

/// The messages without the first `dropped` turns.
value_list without_turns(const value_list& messages, std::size_t dropped) {
  value_list out;
  std::size_t n_users = 0;
  for (const value& one : messages) {
    if (is(one, "user")) ++n_users;
    // What comes before the first user's message belongs to the first turn.
    const std::size_t turn = std::max<std::size_t>(n_users, 1) - 1;
    if (turn >= dropped || is(one, "system") || is(one, "developer")) out.push_back(one);
  }
  return out;
}

void play_turns(const operations& sequence) {
  if (sequence.empty()) return;
  constexpr const char* roles[] = {"user", "assistant", "user",      "tool",
                                   "user", "assistant", "developer", "system"};
  value_list messages;
  std::size_t turns = 0;
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    messages.push_back(message(roles[sequence[i].kind % 8], i));
    if (is(messages.back(), "user")) ++turns;
  }
  turns = std::max<std::size_t>(turns, 1);
  // The newest `fitting` turns fit. Not all turns fit, and even one may be too long.
  const std::size_t fitting = turns == 1 ? 0 : sequence.front().a % turns;
  int asked = 0;
  const auto kept = newest_turns(messages, [&](const value_list& some) {
    ++asked;
    for (std::size_t n = 1; n <= fitting; ++n)
      if (written(some) == written(without_turns(messages, turns - n))) return true;
    return false;
  });
  std::size_t dropped = 0;
  if (turns > 1) {
    const std::size_t good = std::max<std::size_t>(fitting, 1);
    std::size_t stride = 1; // the largest power of two up to a quarter of the turns that fit
    while (2 * stride <= good / 4)
      stride *= 2;
    dropped = turns - good;
    while (dropped % stride > 0)
      ++dropped;
    dropped = std::min(dropped, turns - 1);
  }
  const auto expected = written(without_turns(messages, dropped));
  demand(written(kept) == expected,
         "the messages are \"" + written(kept) + "\", expected \"" + expected + "\"");
  int logarithm = 0;
  while (std::size_t{1} << logarithm <= std::max<std::size_t>(fitting, 1))
    ++logarithm;
  demand(asked <= 2 * logarithm, "so often was asked: " + std::to_string(asked));
}

// Scores.

void play_scores(const operations& sequence) {
  struct held {
    std::unique_ptr<score_memory> memory;
    std::int64_t bytes;
  };
  std::vector<held> all;
  constexpr std::int64_t most = score_memory::most_bytes_of_all;
  const auto sum = [&] {
    std::int64_t bytes = 0;
    for (const held& one : all)
      bytes += one.bytes;
    return bytes;
  };
  for (const operation& op : sequence) {
    if (op.kind % 3 == 0 && !all.empty()) {
      all.erase(all.begin() + op.a % all.size());
    } else {
      // Parts of the whole, so that sums are often equal to the limit.
      const std::int64_t bytes = most / 8 * (op.a % 5) + op.b % 3 - (op.a % 5 > 0 ? 1 : 0);
      auto memory = std::make_unique<score_memory>();
      const bool fits = sum() + bytes <= most;
      demand_equal(memory->take(bytes), fits, "whether scores have room");
      all.push_back({std::move(memory), fits ? bytes : 0});
    }
    demand_equal(score_memory::taken_by_all(), sum(), "the memory of all scores");
  }
  all.clear();
  demand_equal(score_memory::taken_by_all(), 0, "the memory of no scores");
}

} // namespace

TEST_CASE("stop strings that come in pieces are found as in the whole text") {
  CHECK(first_failure({.cases = 5000, .long_cases = 300'000, .most_operations = 40}, play_stops) ==
        "");
}

TEST_CASE("a text has one outcome however it is cut into pieces") {
  CHECK(first_failure({.cases = 60, .long_cases = 5'000, .most_operations = 60}, cut_everywhere) ==
        "");
}

TEST_CASE("as many turns of a chat are kept as counting them one by one would keep") {
  CHECK(first_failure({.cases = 200, .long_cases = 10'000, .most_operations = 120}, play_turns) ==
        "");
}

TEST_CASE("scores of prompts take the memory that requests hold, and give it back") {
  CHECK(first_failure({.cases = 500, .long_cases = 50'000}, play_scores) == "");
}
