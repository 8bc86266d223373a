// The order of several choices' events: a function of their tokens, whatever the steps were.
#include <random>

#include "net/stored/choice_order.hpp"
#include "net/stored/stored_record.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::net;

namespace {

using events = std::vector<actors::event>;

/// What each choice has to tell; its last event has a token too, or not.
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

/// The events of choices that were told up to `from`, as steps may bring them.
events mixed(const std::vector<events>& choices, std::vector<std::size_t> from,
             std::mt19937& random) {
  events all;
  for (;;) {
    std::vector<std::size_t> left;
    for (std::size_t c = 0; c < choices.size(); ++c)
      if (from[c] < choices[c].size()) left.push_back(c);
    if (left.empty()) break;
    const auto c = left[random() % left.size()];
    all.push_back(choices[c][from[c]++]);
  }
  if (!all.empty()) all.back().last = true;
  return all;
}

std::vector<std::string> ordered(choice_order& order, events from) {
  std::vector<std::string> out;
  for (auto& ev : from) {
    ev.use.completion_tokens = 1000; // of the engine, which is ahead
    events now;
    order.add(std::move(ev), now);
    for (const auto& one : now)
      out.push_back(write_record(one));
  }
  return out;
}

} // namespace

TEST_CASE("Choices take turns in the same order however steps bring their events") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto choices = some_choices(random);
    const auto n = static_cast<std::int32_t>(choices.size());
    const std::vector<std::size_t> none(choices.size(), 0);
    choice_order first(n);
    const auto whole = ordered(first, mixed(choices, none, random));
    std::size_t total = 0;
    std::int32_t tokens = 0;
    for (const auto& one : choices) {
      total += one.size();
      for (const auto& ev : one)
        tokens += static_cast<std::int32_t>(ev.tokens.size());
    }
    REQUIRE(whole.size() == total);
    for (std::size_t i = 0; i < whole.size(); ++i)
      CHECK(read_record(whole[i])->last == (i + 1 == whole.size()));
    CHECK(read_record(whole.back())->use.completion_tokens == tokens);
    choice_order second(n);
    CHECK(ordered(second, mixed(choices, none, random)) == whole);

    // A run that goes on after any number of them, with new steps.
    const auto cut = random() % whole.size();
    const std::vector<std::string> before(whole.begin(),
                                          whole.begin() + static_cast<std::ptrdiff_t>(cut));
    auto told = none;
    for (const auto& one : before)
      ++told[static_cast<std::size_t>(read_record(one)->choice)];
    auto again = order_of(before, n);
    CHECK(ordered(again, mixed(choices, told, random)) ==
          std::vector<std::string>(whole.begin() + static_cast<std::ptrdiff_t>(cut), whole.end()));
  }
}

TEST_CASE("What belongs to no choice waits for none") {
  choice_order order(2);
  events out;
  actors::event begun;
  begun.started = true;
  order.add(std::move(begun), out);
  REQUIRE(out.size() == 1);
  actors::event later;
  later.choice = 1;
  later.tokens.push_back({{5, "t", -1.0f}, {}});
  order.add(std::move(later), out);
  CHECK(out.size() == 1); // the first choice has its turn
  actors::event failed;
  failed.error = actors::request_error{actors::errc::timed_out, "late", ""};
  failed.last = true;
  order.add(std::move(failed), out);
  REQUIRE(out.size() == 2);
  CHECK(out.back().last);
}
