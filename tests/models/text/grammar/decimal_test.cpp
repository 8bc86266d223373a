#include <random>
#include <string>

#include "models/text/grammar/schema/decimal.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::models::grammar;

namespace {

number_rules between(const value& least, const value& most, bool exclusive = false) {
  number_rules r;
  r.bounds.push_back({*decimal_of(least), true, exclusive});
  r.bounds.push_back({*decimal_of(most), false, exclusive});
  return r;
}

} // namespace

TEST_CASE("numbers: bounds are compared digit by digit") {
  const auto a = number_automaton(between(-1.5, 12));
  for (const auto* text : {"-1.5", "-1.50", "0", "-0", "12", "12.000", "9.99999999", "-0.1"})
    CHECK(a.accepts(text));
  for (const auto* text : {"-1.51", "12.0001", "13", "100", "-2", "01", "1.", "1e0", "", "-"})
    CHECK_FALSE(a.accepts(text));
  const auto open = number_automaton(between(0, 1, true));
  CHECK_FALSE(open.accepts("0"));
  CHECK_FALSE(open.accepts("0.00"));
  CHECK(open.accepts("0.001"));
  CHECK_FALSE(open.accepts("1.0"));
}

TEST_CASE("numbers: multiples, also of fractions, and their opposite") {
  number_rules r;
  r.multiples.push_back(*decimal_of(value(0.25)));
  const auto a = number_automaton(r);
  CHECK(a.accepts("1.75"));
  CHECK(a.accepts("-0.250"));
  CHECK(a.accepts("3"));
  CHECK_FALSE(a.accepts("0.3"));
  CHECK_FALSE(a.accepts("0.251"));
  number_rules not_even;
  not_even.whole = true;
  not_even.not_multiples.push_back(*decimal_of(value(2)));
  CHECK(number_automaton(not_even).accepts("13"));
  CHECK_FALSE(number_automaton(not_even).accepts("12"));
  CHECK_FALSE(number_automaton(not_even).accepts("13.0"));
}

TEST_CASE("numbers: excluded values and integers") {
  number_rules r;
  r.not_values.push_back(*decimal_of(value(5)));
  CHECK_FALSE(number_automaton(r).accepts("5"));
  CHECK_FALSE(number_automaton(r).accepts("5.0"));
  CHECK(number_automaton(r).accepts("5.01"));
  CHECK(number_automaton(r).accepts("-5"));
  r.fraction = true;
  CHECK_FALSE(number_automaton(r).accepts("6"));
  CHECK(number_automaton(r).accepts("6.5"));
}

TEST_CASE("numbers: the automaton agrees with arithmetic") {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const int low = static_cast<int>(random() % 400) - 200,
              high = low + static_cast<int>(random() % 300);
    const auto a = number_automaton(between(low / 8.0, high / 8.0));
    const int n = static_cast<int>(random() % 800) - 400;
    std::string text = number_text(value(n / 8.0));
    INFO(text << " in " << low / 8.0 << " to " << high / 8.0);
    CHECK(a.accepts(text) == (n >= low && n <= high));
  }
}
