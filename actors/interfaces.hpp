// Every typed interface of actors/, one comment line per message. Messages: actors/messages.hpp.
//
// CAF is visible from here on: include this header from .cpp files of actors/ only.
#pragma once

#include <caf/all.hpp>

#include "actors/messages.hpp"
#include "actors/type_ids.hpp"

namespace twill::actors {

/// One request's life.
using session_actor =
    caf::typed_actor<caf::reacts_to<start_request>, // port: validate, tokenize, queue
                     caf::reacts_to<prompt_queued>, // batcher: in the queue
                     caf::reacts_to<token_ready>,   // batcher: a token of a choice, at most one per
                                                    // step and choice
                     caf::reacts_to<prompt_failed>, // batcher: refused or lost; the request is over
                     caf::reacts_to<cancel_request>,  // port: end silently
                     caf::reacts_to<pause_request>,   // port: the reader is slow
                     caf::reacts_to<resume_request>,  // port
                     caf::reacts_to<deadline_passed>, // supervisor: end with timed_out
                     caf::reacts_to<abort_request>>;  // supervisor: end with the given error

/// Owner of the KV blocks' accounting. An offloader will ask it for blocks to move in the same way.
using kv_allocator_actor =
    caf::typed_actor<caf::replies_to<kv_change>::with<kv_grant>>; // batcher: one change, answered
                                                                  // with block ids

/// Owner of the device, the weights and the step loop; detached.
using executor_actor =
    caf::typed_actor<caf::reacts_to<load_model>, // supervisor: (re)load; told back as model_loaded
                                                 // or load_failed
                     caf::replies_to<step_plan_ptr>::with<step_result_ptr>>; // batcher: run a step

/// Owner of the queue and the running set.
using batcher_actor =
    caf::typed_actor<caf::reacts_to<submit_prompt, session_actor>, // session: queue; answered
                                                                   // prompt_queued or _failed
                     caf::reacts_to<finish_choice>,   // session: a stop string ended this choice
                     caf::reacts_to<release_request>, // session: cancelled, timed out
                     caf::reacts_to<pause_request>,   // session
                     caf::reacts_to<resume_request>,  // session
                     caf::reacts_to<executor_actor>, // supervisor: this executor is ready for steps
                     caf::reacts_to<give_up>>;       // supervisor: no executor will be

/// Owner of every lifecycle: model, executor, deadlines, drain.
using supervisor_actor =
    caf::typed_actor<caf::reacts_to<model_loaded>,       // executor: ready for steps
                     caf::reacts_to<load_failed>,        // executor: cannot
                     caf::reacts_to<executor_broken>,    // executor: a step failed, the device is
                                                         // closed
                     caf::reacts_to<watch_deadlines>,    // port: requests with a deadline exist
                     caf::reacts_to<check_deadlines>,    // itself
                     caf::reacts_to<check_drained>,      // port: has a drain ended already?
                     caf::reacts_to<abort_all_requests>, // port: end every request
                     caf::reacts_to<stop_engine>>;       // engine: stop every actor

} // namespace twill::actors
