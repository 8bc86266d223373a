// submission: makes the message with which the batcher queues a request, from the request and its
// encoded prompt, and refuses what does not fit the model.
//
// One thread at a time for each request. The functions have no state, but draw a random seed for a
// request that gives none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/messages.hpp"
#include "actors/session/output_plan.hpp"
#include "actors/session/session_args.hpp"

namespace twill::actors {

/// Returns the ids of the prompt after the truncation that the request asks for.
token_ids truncate_prompt(const request& asked, std::vector<std::int32_t> ids);

/// Fills all members of `out` except the grammar. Moves the sampling parameters and the output of
/// an earlier run out of `args.request`. Returns why the request is refused; nullopt: it is not.
std::optional<request_error> fill_submission(session_args& args, const served_model& model,
                                             const output_plan& plan, token_ids prompt,
                                             submit_prompt& out);

} // namespace twill::actors
