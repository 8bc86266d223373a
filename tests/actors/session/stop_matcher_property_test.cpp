// stop_matcher finds stop strings in text that arrives in parts. Over random texts in random parts,
// its output is what a search of the whole text gives.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "actors/session/stop_matcher.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::test;

namespace {

/// A text of few letters, so that it repeats itself.
std::string text_of(std::uint32_t number, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i, number /= 3)
    text += "abc"[number % 3];
  return text;
}

/// The first position at which a stop string is complete, and which string it is: if several end at
/// that position, the longest.
struct first_stop {
  std::size_t begin = std::string::npos, end = std::string::npos;

  first_stop(const std::string& text, const std::vector<std::string>& stops) {
    for (std::size_t at = 1; at <= text.size() && end == std::string::npos; ++at)
      for (const std::string& stop : stops)
        if (!stop.empty() && std::string_view(text).substr(0, at).ends_with(stop) &&
            at - stop.size() < begin) {
          begin = at - stop.size();
          end = at;
        }
  }
  bool found() const { return end != std::string::npos; }
};

/// The length of the longest end of the text that is an incomplete stop string.
std::size_t held_back(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t most = 0;
  for (const std::string& stop : stops)
    for (std::size_t n = 1; n < stop.size() && n <= text.size(); ++n)
      if (text.ends_with(stop.substr(0, n))) most = std::max(most, n);
  return most;
}

/// The first operation gives the settings. Of the other operations, one in three adds a stop string
/// and the rest add text. The matcher searches a text for stop strings, or passes it through while
/// stopping is not yet allowed.
void check_matcher(const operations& sequence) {
  if (sequence.empty()) return;
  const bool includes = sequence.front().a % 2 == 1;
  std::vector<std::string> stops;
  for (const operation& o : sequence)
    if (o.kind % 3 == 1) stops.push_back(text_of(o.a, o.b % 6));
  actors::stop_matcher matcher(stops, includes);
  std::string passed, text, out; // passed text cannot be a part of a stop string
  for (const operation& o : sequence) {
    if (o.kind % 3 == 1) continue;
    const std::string piece = text_of(o.a, o.b % 7);
    if (o.kind % 9 == 2) {
      matcher.pass(piece, out);
      passed += text + piece;
      text.clear();
      demand(out == passed, "what passes is \"" + out + "\", expected \"" + passed + "\"");
      continue;
    }
    text += piece;
    const first_stop stop(text, stops);
    const bool found = matcher.push(piece, out);
    demand(found == stop.found(), "a stop is " + std::string(found ? "found" : "missed"));
    const std::string wanted =
        passed + text.substr(0, found ? (includes ? stop.end : stop.begin)
                                      : text.size() - held_back(text, stops));
    demand(out == wanted, "the output is \"" + out + "\", expected \"" + wanted + "\"");
    if (!found) continue;
    demand(matcher.found() == text.substr(stop.begin, stop.end - stop.begin),
           "found is \"" + matcher.found() + "\"");
    return;
  }
  matcher.flush(out);
  demand(out == passed + text, "at the end is \"" + out + "\", expected \"" + passed + text + "\"");
}

} // namespace

TEST_CASE("stop strings are found as in the whole text, and no more than they need is held back",
          "[actors]") {
  CHECK(first_failure({3000, 200'000, 14}, check_matcher) == "");
}
