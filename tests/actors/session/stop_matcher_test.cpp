#include <random>
#include <string>
#include <vector>

#include "actors/session/stop_matcher.hpp"
#include "tests/catch.hpp"

using twill::actors::stop_matcher;

namespace {

struct outcome {
  std::string text;
  std::string found;
  bool operator==(const outcome&) const = default;
};

outcome feed(const std::vector<std::string>& stops, const std::vector<std::string>& parts,
             bool include = false) {
  stop_matcher matcher(stops, include);
  outcome o;
  for (const auto& part : parts) {
    if (matcher.push(part, o.text)) {
      o.found = matcher.found();
      return o;
    }
    // The oracle below checks that no later match begins in text that was returned here.
  }
  matcher.flush(o.text);
  return o;
}

/// Searches the whole text at once: the match that ends first, the longest if several end there.
outcome oracle(const std::vector<std::string>& stops, const std::string& text, bool include) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const auto& stop : stops)
      if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0 &&
          (best == nullptr || stop.size() > best->size()))
        best = &stop;
    if (best != nullptr) return {text.substr(0, include ? end : end - best->size()), *best};
  }
  return {text, ""};
}

} // namespace

TEST_CASE("a stop string is found across parts and no part of it gets out", "[actors][stop]") {
  CHECK(feed({"STOP"}, {"ab S", "TO", "P cd"}) == outcome{"ab ", "STOP"});
  CHECK(feed({"STOP"}, {"ab S", "TO", "P cd"}, true) == outcome{"ab STOP", "STOP"});
  CHECK(feed({"STOP"}, {"ab S", "TO", "X"}) == outcome{"ab STOX", ""});
  CHECK(feed({"aab"}, {"a", "a", "a", "b"}) == outcome{"a", "aab"});
  CHECK(feed({}, {"a", "b"}) == outcome{"ab", ""});
}

TEST_CASE("text that may begin a stop string is held back", "[actors][stop]") {
  stop_matcher matcher({"\n\n"}, false);
  std::string out;
  CHECK_FALSE(matcher.push("one\n", out));
  CHECK(out == "one");
  CHECK_FALSE(matcher.push("two", out));
  CHECK(out == "one\ntwo");
}

TEST_CASE("the result does not depend on where the text is cut", "[actors][stop]") {
  std::mt19937 rng(7);
  auto any = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  auto text_of = [&](int low, int high) {
    std::string s;
    for (int n = any(low, high); n > 0; --n)
      s += static_cast<char>('a' + any(0, 2));
    return s;
  };
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> stops;
    for (int n = any(1, 4); n > 0; --n)
      stops.push_back(text_of(1, 5));
    const std::string text = text_of(0, 24);
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = static_cast<std::size_t>(any(1, 4));
      parts.push_back(text.substr(at, n));
      at += n;
    }
    const bool include = any(0, 1) == 1;
    REQUIRE(feed(stops, parts, include) == oracle(stops, text, include));
  }
}
