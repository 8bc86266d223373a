// trial: whether the masks of a grammar can be made in time, found out by walking through it.
//
// A grammar that is small and compiles at once may still say the same text in so many ways that
// each token makes its states multiply: `(([a-z]{1,100}){1,100}){1,100}x` does. Nothing bounds that
// from inside the matcher, so the helper process tries it, where its own limits hold. A walk takes
// tokens at random, so that it finds what is slow wherever one gets; what only a chosen text
// reaches is left to the bound on each mask of an output (actors/executor/output_guard.hpp).
#pragma once

#include <chrono>
#include <optional>

#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/grammar/errc.hpp"

namespace twill::models::grammar {

/// Processor time that a mask may take, with the step to the token before it. Ordinary grammars
/// take some microseconds.
inline constexpr std::chrono::milliseconds most_mask_time{50};

/// The refusal of a grammar that is too slow. Takes some ten milliseconds for an ordinary one;
/// for another one as long as it takes.
std::optional<failure> try_masks(const compiled_grammar_ptr& grammar);

/// Processor time of the calling thread.
std::chrono::nanoseconds thread_time();

} // namespace twill::models::grammar
