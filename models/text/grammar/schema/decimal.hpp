// decimal: exact decimal numbers, and the automaton of all JSON numbers within given bounds.
//
// Bounds and multiples are compared digit by digit, so that the rounding of doubles cannot change
// what is accepted. Where a bound is given, the automaton accepts no number with an exponent. The
// functions are pure; any thread may call them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/base/value.hpp"
#include "models/text/grammar/schema/automaton.hpp"

namespace twill::models::grammar {

struct decimal {
  bool negative = false;
  std::string whole = "0"; ///< digits before the point, no leading zeros
  std::string fraction;    ///< digits after the point, no trailing zeros

  bool is_zero() const { return whole == "0" && fraction.empty(); }
  bool is_whole() const { return fraction.empty(); }
};

/// Returns none if `v` is not a number.
std::optional<decimal> decimal_of(const value& v);
/// True if the number is 2^63 or more. Whole numbers of that size may have been rounded when they
/// were read.
bool is_rounded(const value& v);
/// -1, 0 or 1.
int compare(const decimal& a, const decimal& b);
/// The shortest text that reads back as the number, as Python's json.dumps writes it.
std::string number_text(const value& v);

struct number_rules {
  bool whole = false;    ///< integers only
  bool fraction = false; ///< numbers that are no integers only
  struct bound {
    decimal at;
    bool is_least = false;
    bool exclusive = false;
    double rounded = 0; ///< the double that was read for `at`, if reading may have rounded it;
                        ///< otherwise 0
  };
  std::vector<bound> bounds;
  std::vector<decimal> multiples;     ///< the number must be a multiple of each
  std::vector<decimal> not_multiples; ///< the number must be a multiple of none
  std::vector<decimal> not_values;

  bool trivial() const {
    return !fraction && bounds.empty() && multiples.empty() && not_multiples.empty() &&
           not_values.empty();
  }
};

/// Throws the exception refusal (too_large, unsupported) if a multiple needs too many states.
automaton number_automaton(const number_rules& rules);

/// Whether the number satisfies the rules. Builds no automaton.
bool satisfies(const decimal& number, const number_rules& rules);

} // namespace twill::models::grammar
