// trial: checks that the masks of a grammar can be computed fast enough, by generating random texts
// of the grammar.
//
// A small grammar that compiles at once can still match one text in so many ways that the parser's
// states multiply with each token; an example is `(([a-z]{1,100}){1,100}){1,100}x`. The matcher
// itself has no limit for this, so the helper process makes the trial, within the helper's limits
// of time and memory. The trial draws tokens at random, and so finds grammars that are slow on
// ordinary paths. Slow states that only a particular text reaches are caught later by the limit on
// each mask of an output (actors/executor/output_guard.hpp).
#pragma once

#include <chrono>
#include <optional>

#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/grammar/errc.hpp"

namespace twill::models::grammar {

/// The most processor time that one mask may take, together with accepting the token before it.
/// Ordinary grammars take some microseconds.
inline constexpr std::chrono::milliseconds most_mask_time{50};

/// Returns the refusal of a grammar whose masks are too slow, or none. Takes about ten milliseconds
/// for an ordinary grammar; for a slow grammar the time has no limit here.
std::optional<failure> try_masks(const compiled_grammar_ptr& grammar);

/// Processor time of the calling thread.
std::chrono::nanoseconds thread_time();

} // namespace twill::models::grammar
