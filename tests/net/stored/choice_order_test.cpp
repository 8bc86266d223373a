// The order of several choices' events in a stored response depends only on their tokens, and not
// on the engine's steps that drew them.
#include <random>

#include "net/stored/choice_order.hpp"
#include "net/stored/stored_record.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::net;

namespace {

using events = std::vector<actors::event>;

/// The events of each choice; the last event of a choice may or may not have a token.
std::vector<events> some_choices(std::mt19937& random) {
  std::vector<events> choices(2 + random() % 4);
  std::int32_t id = 0;
  for (std::size_t c = 0; c < choices.size(); ++c) {
    choices[c].resize(1 + random() % 12);
    for (auto& ev : choices[c]) {
      ev.choice = static_cast<std::int32_t>(c);
      ev.tokens.push_back({{++id, "t", -1.0f}, {}});
    }
    if (random() % 2 == 0) choices[c].back().tokens.clear();
    choices[c].back().finish = actors::finish_reason::stop;
  }
  return choices;
}

/// All events, as steps may bring them.
events mixed(const std::vector<events>& choices, std::mt19937& random) {
  events all;
  std::vector<std::size_t> received(choices.size(), 0);
  for (;;) {
    std::vector<std::size_t> left;
    for (std::size_t c = 0; c < choices.size(); ++c)
      if (received[c] < choices[c].size()) left.push_back(c);
    if (left.empty()) break;
    const auto c = left[random() % left.size()];
    all.push_back(choices[c][received[c]++]);
    all.back().use.completion_tokens = 1000; // the engine's count, which is ahead
  }
  all.back().last = true;
  return all;
}

std::vector<std::string> ordered(const events& from, std::size_t n_choices) {
  choice_order order(static_cast<std::int32_t>(n_choices));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::deque<std::size_t> now;
    order.add(from[i], i, now);
    for (const auto place : now) {
      REQUIRE(place <= i);
      auto ev = from[place];
      order.adjust(ev);
      out.push_back(write_record(ev));
    }
  }
  return out;
}

} // namespace

TEST_CASE("Choices take turns in the same order however steps bring their events") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto choices = some_choices(random);
    const auto whole = ordered(mixed(choices, random), choices.size());
    std::size_t total = 0;
    std::int32_t tokens = 0;
    for (const auto& one : choices) {
      total += one.size();
      for (const auto& ev : one)
        tokens += static_cast<std::int32_t>(ev.tokens.size());
    }
    REQUIRE(whole.size() == total);
    std::int32_t so_far = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const auto ev = read_record(whole[i]);
      so_far += static_cast<std::int32_t>(ev->tokens.size());
      CHECK(ev->last == (i + 1 == whole.size()));
      CHECK(ev->use.completion_tokens == so_far);
    }
    CHECK(so_far == tokens);
    CHECK(ordered(mixed(choices, random), choices.size()) == whole);
    // If a stop leaves only part of the events, what can be sent is a prefix of the whole order.
    auto part = mixed(choices, random);
    part.resize(random() % part.size());
    const auto begun = ordered(part, choices.size());
    REQUIRE(begun.size() <= part.size());
    CHECK(std::equal(begun.begin(), begun.end(), whole.begin()));
  }
}

TEST_CASE("What belongs to no choice waits for none, and an error ends all waiting") {
  choice_order order(2);
  std::deque<std::size_t> out;
  actors::event begun;
  begun.started = true;
  order.add(begun, 0, out);
  CHECK(out == std::deque<std::size_t>{0});
  actors::event later;
  later.choice = 1;
  later.tokens.push_back({{5, "t", -1.0f}, {}});
  order.add(later, 1, out);
  CHECK(out.size() == 1); // choice 1 waits while choice 0 has its turn
  actors::event failed;
  failed.error = actors::request_error{actors::errc::timed_out, "late", ""};
  failed.last = true;
  order.add(failed, 2, out);
  CHECK(out == std::deque<std::size_t>{0, 1, 2}); // no choice is waited for any more
  order.adjust(failed);
  CHECK(failed.last);
}
