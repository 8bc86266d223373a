// capacity: whether the batcher has room for a request, in its queue and in the KV cache.
//
// Free functions that change nothing. A failed check is an error for the request's client.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/batcher/sequence_groups.hpp"
#include "actors/messages.hpp"
#include "actors/scheduling/scheduler.hpp"

namespace twill::actors {

/// Returns why the request cannot be queued: the queue is full, or the client has as many requests
/// in it as one client may have. nullopt: the request can be queued. Requests that the running set
/// can take at once do not count against the queue, so a burst that will run at once is not
/// refused.
std::optional<request_error> no_room(const submit_prompt& prompt, std::uint64_t client,
                                     const batcher_limits& limits, const scheduler& running_set,
                                     const sequence_groups& queue);

/// The most tokens, of prompt and output together, of a sequence that has the KV cache for itself.
/// The last drawn token needs no place in the cache, because no step reads it.
std::int64_t most_tokens_of_sequence(const batcher_limits& limits);

/// Why a sequence cannot end within the KV cache; nullopt if it can.
std::optional<request_error> misfit(const sequence_spec& spec, const batcher_limits& limits);

} // namespace twill::actors
