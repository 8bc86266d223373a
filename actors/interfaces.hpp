// Every typed interface of actors/, with one comment line per message: who sends it, and what for.
// The messages are in actors/messages.hpp.
//
// CAF is visible from here on: include this header from .cpp files of actors/ only.
#pragma once

#include "actors/batcher/batcher_limits.hpp"
#include "actors/detail/caf_compat.hpp"
#include "actors/messages.hpp"
#include "actors/type_ids.hpp"

namespace twill::actors {

struct scheduler_replaced;
struct offloader_replaced;

/// The life of one request.
using session_actor = caf::typed_actor<
    // port: validate, tokenize and queue the request.
    takes<start_request>,
    // text pool: the prompt has been turned into ids, or refused.
    takes<encoded_prompt_ptr>,
    // batcher: the request is in the queue.
    takes<prompt_queued>,
    // grammar compiler: the grammar that the output must keep to, or why there is none.
    takes<grammar_ready>,
    // itself: `structured.wait_timeout` has passed; end the request if its grammar is not there.
    takes<grammar_overdue>,
    // batcher: the prompt's tokens are scored; before any token.
    takes<prompt_scored>,
    // batcher: what the request wants of its prompt's hidden states; in place of tokens.
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
    // supervisor: `scheduler.queue_timeout` has passed; end the request if it still waits.
    takes<waited_too_long>,
    // supervisor: end the request with the given error.
    takes<abort_request>,
    // supervisor: the batcher was lost, and another has taken its place.
    takes<scheduler_replaced>>;

/// The owner of the accounting of KV blocks.
using kv_allocator_actor = caf::typed_actor<
    // batcher: apply one change of leases; the answer has the ids of the granted blocks.
    answers<kv_grant, kv_change>,
    // batcher: who has which blocks, for an administrator.
    answers<kv_leases, describe_leases>>;

/// The owner of the device, the weights and the step loop; it has a thread of its own.
using executor_actor = caf::typed_actor<
    // supervisor: load the model, or load it again; told back as model_loaded or load_failed.
    takes<load_model>,
    // batcher: run one step; while it computes, the next one may be launched.
    answers<step_result_ptr, step_plan_ptr>,
    // batcher: these sequences leave; skip their rows.
    takes<skip_sequences>,
    // batcher: of which sequences there are states, for a ledger.
    answers<listed_states, list_states>,
    // itself: begin the oldest step that waits.
    takes<run_next>,
    // itself: a step that was launched has ended.
    takes<step_computed>>;

/// supervisor -> batcher: this executor has loaded its model and takes steps from now on. Declared
/// here because it carries a handle.
struct executor_ready {
  executor_actor executor;
  std::uint64_t generation = 0; ///< plans are for this life
  batcher_limits limits;        ///< what the executor's memory holds; it may be less than before
};

/// The owner of compiling; it has a thread of its own.
using grammar_compiler_actor = caf::typed_actor<
    // session: compile this grammar; answered by grammar_ready to that session.
    takes<compile_grammar, session_actor>,
    // itself: go on with the next one.
    takes<compile_next>>;

/// The owner of the queue and the running set.
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
    // session: end the request if it was never scheduled.
    takes<waited_too_long>,
    // supervisor: an executor is ready for steps.
    takes<executor_ready>,
    // offloader: blocks that were asked for are in host memory. itself: they took too long.
    takes<blocks_fetched>,
    // supervisor: another offloader has taken the place of the one that was lost.
    takes<offloader_replaced>,
    // port: tell an administrator who holds what.
    takes<describe_scheduler>,
    // port: tell what is taken, and by whom.
    takes<ask_ledger>>;

/// The owner of the tiers off the device: I/O threads, stores, budgets, KV blocks; it has a thread
/// of its own.
using offloader_actor = caf::typed_actor<
    // supervisor: serve what another one has left.
    takes<serve_orders>,
    // weight ring: have the transfers run that were ordered by now.
    takes<fetch_weights>,
    // supervisor: the model is loaded; take the memory of KV tiers and open their file.
    takes<open_tiers>,
    // batcher: bring these blocks to host memory; answered by blocks_fetched to that batcher.
    takes<fetch_blocks, batcher_actor>,
    // batcher: these will be wanted.
    takes<prefetch_blocks>,
    // batcher: these blocks have left the device.
    takes<blocks_spilled>>;

/// supervisor -> batcher: from now on this one takes spills and fetches.
struct offloader_replaced {
  offloader_actor offloader;
};

/// supervisor -> session: requests that the lost batcher had queued are to be queued again, or end
/// with `why` when something of them was streamed.
struct scheduler_replaced {
  batcher_actor batcher;
  grammar_compiler_actor grammars; ///< another one when it was the compiler that was lost
  request_error why;
};

/// The owner of every lifecycle: model, executor, deadlines, drain.
using supervisor_actor = caf::typed_actor<
    // executor: the model is loaded.
    takes<model_loaded>,
    // executor: the model could not be loaded.
    takes<load_failed>,
    // executor: a step failed, and the device is closed.
    takes<executor_broken>,
    // port: requests with a deadline exist; look at the clock from now on.
    takes<watch_deadlines>,
    // supervisor itself, every tick: end the requests whose deadline has passed.
    takes<check_deadlines>,
    // port: a drain was begun; it may have ended already.
    takes<check_drained>,
    // port: end every request.
    takes<abort_all_requests>,
    // supervisor itself: a restart is due.
    takes<wake_supervisor>,
    // engine: stop every actor.
    takes<stop_engine>>;

} // namespace twill::actors
