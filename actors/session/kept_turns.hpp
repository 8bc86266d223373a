// kept_turns: chooses the turns of a chat that stay in its prompt when not all of them fit the
// context.
//
// A turn is a user's message and all messages up to the next user's message, so that tool calls
// stay beside their outputs. System and developer messages belong to no turn and always stay. The
// last turn always stays too. The functions are pure.
#pragma once

#include <functional>

#include "config/base/value.hpp"

namespace twill::actors {

/// Returns the newest turns of `messages`, which do not all fit: those that `fits` accepts, less a
/// few of the oldest. These few are left out as well, so that the prompts of the following turns
/// begin alike and can reuse the cached KV of that beginning. `fits` is called about 2 *
/// log2(number of turns that fit) times.
value_list newest_turns(const value_list& messages, const std::function<bool(value_list)>& fits);

} // namespace twill::actors
