// kept_turns: which turns of a chat stay in its prompt when not all of them fit the context.
//
// A turn is a user's message and what follows it up to the next one, so that the calls of tools
// stay beside their outputs. System and developer messages belong to no turn and always stay, as
// the last turn does. Pure.
#pragma once

#include <functional>

#include "config/base/value.hpp"

namespace twill::actors {

/// As many of the newest turns of `messages`, which do not all fit, as `fits` accepts. It is asked
/// about twice the logarithm of that number. A few turns more than necessary are left out, so that
/// the prompts of the next turns begin alike and the KV cache of that beginning is reused.
value_list newest_turns(const value_list& messages, const std::function<bool(value_list)>& fits);

} // namespace twill::actors
