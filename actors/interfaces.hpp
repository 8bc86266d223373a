// Every typed interface of actors/, with one comment for each message that names its sender and its
// purpose. The messages are defined in actors/messages.hpp.
//
// This header includes CAF: include it only from .cpp files of actors/.
#pragma once

#include "actors/batcher/batcher_limits.hpp"
#include "actors/detail/caf_compat.hpp"
#include "actors/messages.hpp"
#include "actors/type_ids.hpp"

namespace twill::actors {

struct scheduler_replaced;
struct offloader_replaced;

/// Handles one request from its submission to its end.
using session_actor = caf::typed_actor<
    // port: validate, tokenize and queue the request.
    takes<start_request>,
    // text pool: the prompt was converted into ids, or was refused.
    takes<encoded_prompt_ptr>,
    // batcher: the request is in the queue.
    takes<prompt_queued>,
    // grammar compiler: the compiled grammar of the output, or the reason why there is none.
    takes<grammar_ready>,
    // itself: `structured.wait_timeout` has passed; end the request if its grammar has not arrived.
    takes<grammar_overdue>,
    // batcher: the scores of the prompt's tokens; sent before any token.
    takes<prompt_scored>,
    // batcher: the pooled hidden states of the prompt; sent in place of tokens.
    takes<prompt_pooled>,
    // batcher: a choice has a new token; at most one per step and choice.
    takes<token_ready>,
    // batcher: the request was refused or lost; it is over.
    takes<prompt_failed>,
    // port: end the request without a further event.
    takes<cancel_request>,
    // port: the client reads too slowly; stop scheduling the request.
    takes<pause_request>,
    // port: the client has caught up; schedule the request again.
    takes<resume_request>,
    // supervisor: the deadline has passed; end the request with timed_out.
    takes<deadline_passed>,
    // supervisor: `scheduler.queue_timeout` has passed; end the request if it is still queued.
    takes<waited_too_long>,
    // supervisor: end the request with the given error.
    takes<abort_request>,
    // supervisor: the batcher has failed, and a new batcher has replaced it.
    takes<scheduler_replaced>>;

/// Owns the accounting of KV blocks.
using kv_allocator_actor = caf::typed_actor<
    // batcher: apply a change of leases, which uses blocks that were granted before.
    takes<kv_change>,
    // batcher: look up prefixes and grant blocks ahead of their use.
    answers<kv_grant, block_request>,
    // batcher: list which leases have which blocks, for an administrator.
    answers<kv_leases, describe_leases>>;

/// Owns the device, the weights and the step loop; runs on a thread of its own.
using executor_actor = caf::typed_actor<
    // From the supervisor: load the model, or load it again. The executor reports the result to the
    // supervisor as model_loaded or load_failed.
    takes<load_model>,
    // batcher: run one step; the next step may be launched while this one computes.
    answers<step_result_ptr, step_plan_ptr>,
    // batcher: these sequences leave; skip their rows.
    takes<skip_sequences>,
    // batcher: list the sequences for which the executor keeps states, for a ledger.
    answers<listed_states, list_states>,
    // itself: begin the oldest waiting step.
    takes<run_next>,
    // itself: a step that was launched has ended.
    takes<step_computed>>;

/// supervisor -> batcher: this executor has loaded its model and takes steps from now on. This
/// message is declared here and not in messages.hpp, because it carries an actor handle.
struct executor_ready {
  executor_actor executor;
  std::uint64_t generation = 0; ///< the generation that step plans must name
  batcher_limits limits; ///< what fits the executor's memory; may be less than before a restart
};

/// Compiles grammars, on a thread of its own.
using grammar_compiler_actor = caf::typed_actor<
    // session: compile this grammar; answered by grammar_ready to that session.
    takes<compile_grammar, session_actor>,
    // itself: compile the next grammar that waits.
    takes<compile_next>>;

/// Owns the request queue and the running set.
using batcher_actor = caf::typed_actor<
    // session: queue this prompt; answered by prompt_queued or prompt_failed to that session.
    takes<submit_prompt, session_actor>,
    // session: a stop string ended this choice.
    takes<finish_choice>,
    // session: the request was cancelled, timed out or aborted.
    takes<release_request>,
    // session: stop scheduling this request.
    takes<pause_request>,
    // session: schedule this request again.
    takes<resume_request>,
    // session: `scheduler.queue_timeout` has passed; end the request if it was never scheduled.
    takes<waited_too_long>,
    // supervisor: an executor is ready for steps.
    takes<executor_ready>,
    // offloader: blocks that were asked for are in host memory. itself: the fetch took too long.
    takes<blocks_fetched>,
    // supervisor: a new offloader has replaced the one that failed.
    takes<offloader_replaced>,
    // port: report which sequences hold which blocks, for an administrator.
    takes<describe_scheduler>,
    // port: report which resources are taken, and by which owners.
    takes<ask_ledger>>;

/// Owns the KV blocks in the memory tiers beside the device (host memory and disk), and brings them
/// there and back. Runs on a thread of its own.
using offloader_actor = caf::typed_actor<
    // supervisor: the model is loaded; take the memory of the KV tiers and open their file.
    takes<open_tiers>,
    // batcher: bring these blocks to host memory; answered by blocks_fetched to that batcher.
    takes<fetch_blocks, batcher_actor>,
    // batcher: these blocks will soon be needed.
    takes<prefetch_blocks>,
    // batcher: these blocks have been copied from the device to host memory.
    takes<blocks_spilled>>;

/// supervisor -> batcher: from now on this offloader takes spills and fetches.
struct offloader_replaced {
  offloader_actor offloader;
};

/// supervisor -> session: the batcher has failed. A request that was in its queue is to be queued
/// again at `batcher`, or ends with `why` if a part of its output was already streamed.
struct scheduler_replaced {
  batcher_actor batcher;
  grammar_compiler_actor grammars; ///< a new compiler, if the compiler was the actor that failed
  request_error why;
};

/// Owns every lifecycle: model, executor, deadlines, drain.
using supervisor_actor = caf::typed_actor<
    // executor: the model is loaded.
    takes<model_loaded>,
    // executor: the model could not be loaded.
    takes<load_failed>,
    // executor: a step failed, and the device is closed.
    takes<executor_broken>,
    // port: there are requests with a deadline; check the clock regularly from now on.
    takes<watch_deadlines>,
    // supervisor itself, every tick: end the requests whose deadline has passed.
    takes<check_deadlines>,
    // port: a drain has begun; check whether it has ended already.
    takes<check_drained>,
    // port: end every request.
    takes<abort_all_requests>,
    // supervisor itself: a restart is due.
    takes<wake_supervisor>,
    // engine: stop every actor.
    takes<stop_engine>>;

} // namespace twill::actors
