#include "actors/session/kept_turns.hpp"

#include <cstdint>
#include <random>
#include <string>

#include "tests/catch.hpp"

using namespace twill;
using namespace twill::actors;

namespace {

value said(const char* role, const std::string& text) {
  return value_object{{"role", role}, {"content", text}};
}

/// A chat with a message for each letter: s for system, u for user, a for assistant, t for tool.
/// The texts of the messages are numbered.
value_list chat_of(const std::string& letters) {
  value_list all;
  for (const char letter : letters) {
    const char* role = letter == 's'   ? "system"
                       : letter == 'u' ? "user"
                       : letter == 'a' ? "assistant"
                                       : "tool";
    all.push_back(said(role, std::to_string(all.size())));
  }
  return all;
}

std::string texts_of(const value_list& messages) {
  std::string all;
  for (const auto& message : messages)
    all += *message.find("content")->as_string() + " ";
  return all;
}

std::string kept(const std::string& letters, std::size_t most) {
  return texts_of(newest_turns(chat_of(letters),
                               [most](const value_list& some) { return some.size() <= most; }));
}

} // namespace

TEST_CASE("the oldest turns are left out whole, and system messages stay") {
  CHECK(kept("suauaua", 6) == "0 3 4 5 6 ");
  CHECK(kept("suauaua", 3) == "0 5 6 ");
  CHECK(kept("usausa", 5) == "1 3 4 5 ");
  // Outputs of tools belong to the turn that called the tools.
  CHECK(kept("uatatauaua", 7) == "6 7 8 9 ");
  CHECK(kept("aauaua", 4) == "4 5 ");
  CHECK(kept("uuu", 2) == "1 2 ");
}

TEST_CASE("the last turn stays even where it does not fit") {
  CHECK(kept("suaua", 1) == "0 3 4 ");
  CHECK(kept("uaaa", 1) == "0 1 2 3 ");
  CHECK(kept("s", 0) == "0 ");
  CHECK(kept("", 0).empty());
  CHECK(kept("aa", 0) == "0 1 ");
}

TEST_CASE("what is kept of any chat is its newest turns, they fit, and few more would") {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string letters;
    std::size_t turns = 0;
    for (auto left = random() % 120; left > 0; --left) {
      letters += "suuuaat"[random() % 7];
      turns += letters.back() == 'u';
    }
    if (turns < 2) continue;
    const auto all = chat_of(letters);
    const std::size_t most = random() % all.size();
    std::size_t asked = 0;
    const auto some = newest_turns(all, [&](const value_list& tried) {
      ++asked;
      return tried.size() <= most;
    });
    CHECK(asked <= 14);
    // Before the first kept turn, exactly the system messages are kept.
    std::size_t at = 0, kept_turns = 0;
    bool begun = false;
    for (const auto& message : all) {
      const bool same = at < some.size() && some[at] == message;
      const bool system = *message.find("role") == value("system");
      if (same) ++at;
      if (same && !system) begun = true;
      CHECK(same == (begun || system));
      kept_turns += same && *message.find("role") == value("user");
    }
    REQUIRE(at == some.size());
    REQUIRE(kept_turns >= 1);
    if (kept_turns > 1) CHECK(some.size() <= most);
  }
}

TEST_CASE("the beginning of a chat that grows beyond the context changes seldom") {
  std::string before;
  std::size_t changes = 0;
  value_list all;
  for (int turn = 0; turn < 400; ++turn) {
    all.push_back(said("user", std::to_string(turn)));
    if (all.size() > 40) {
      const auto some = newest_turns(all, [](const value_list& m) { return m.size() <= 40; });
      CHECK(some.size() > 30);
      const auto first = *some.front().find("content")->as_string();
      changes += first != before;
      before = first;
    }
    all.push_back(said("assistant", "yes"));
  }
  CHECK(changes <= 400 / 4 + 1);
}
