// Every message that actors exchange, as plain value structs without CAF.
//
// A message is named for the fact or the order that it carries. It is small, or a shared handle to
// something immutable: a prompt, a step plan and a step result are built once and never copied.
// Which actor takes which message is in actors/interfaces.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/executor/step_runner.hpp"
#include "actors/kv/block_pool.hpp"
#include "actors/port/engine_port.hpp"
#include "actors/scheduling/step_decision.hpp"
#include "config/base/ledger.hpp"
#include "config/grammar_spec.hpp"
#include "config/sampling.hpp"

namespace twill::actors {

using std::chrono::steady_clock;
using token_ids = std::shared_ptr<const std::vector<std::int32_t>>;

struct grammar_answer; // in actors/structured/grammar_answer.hpp
using grammar_answer_ptr = std::shared_ptr<const grammar_answer>;
struct output_rules;  // in actors/executor/output_guard.hpp
class offloader_core; // in actors/offloader/offloader_core.hpp

/// The part of a sequence that never changes; batcher and executor share it.
struct sequence_spec {
  token_ids prompt;
  std::shared_ptr<const config::sampling_params> sampling;
  token_ids stop_ids;       ///< end ids (unless ignored) and the request's stop ids, ascending
  std::uint64_t seed = 0;   ///< of this choice's random draws
  std::int32_t max_new = 0; ///< output tokens at most

  std::shared_ptr<const output_rules> rules; ///< what the output must look like; null: anything
  /// Token sequences that the output must not hold; null: none.
  std::shared_ptr<const std::vector<std::vector<std::int32_t>>> bad_words;
  /// A bit for each token that may be drawn; null: all. Not together with `rules`.
  std::shared_ptr<const std::vector<std::uint32_t>> allowed;
  std::int32_t prompt_logprobs = -1; ///< alternatives for each prompt token; -1: no scores
  std::uint64_t cache_scope = 0;     ///< whose cached prefixes it may find (kv/cache_scope.hpp)
  actors::pooling pooling = actors::pooling::none; ///< else its one draw is no token

  bool scores_prompt() const { return prompt_logprobs >= 0; }
  bool is_pooled() const { return pooling != actors::pooling::none; }
  /// Whether each prompt token takes a row of a step's results, so that none is left to the cache.
  bool needs_all_rows() const { return scores_prompt() || pooling == actors::pooling::mean; }
};

/// A prompt token's log-probability given those before it.
struct prompt_score {
  float logprob = 0;
  std::vector<std::pair<std::int32_t, float>> top; ///< most likely first
};

/// port -> session: begin.
struct start_request {
  std::optional<request_error> refusal; ///< why the port does not admit the request
};
/// text pool -> session: the prompt with its ids, or with why it has none. Nobody else has it.
struct encoded_prompt; // in actors/session/prompt.hpp
using encoded_prompt_ptr = std::shared_ptr<encoded_prompt>;
/// port -> session: end without a further event.
struct cancel_request {};
/// supervisor -> session: end with timed_out.
struct deadline_passed {};
/// supervisor -> session -> batcher: end with queue_timed_out, unless it runs or has run.
struct waited_too_long {
  request_id request = 0;

  static request_error error() {
    return {
        errc::queue_timed_out,
        "the request waited for longer than `scheduler.queue_timeout` for its turn; retry later",
        ""};
  }
};
/// supervisor -> session: end with `why`.
struct abort_request {
  request_error why;
};

/// What one client may have of the scheduler; 0 sets no limit of its own.
struct client_limits {
  std::int32_t weight = 1;
  std::int32_t max_running = 0; ///< sequences
  std::int32_t max_queued = 0;  ///< requests
};

/// session -> batcher: queue this request; choice i is drawn with seed + i.
struct submit_prompt {
  request_id request = 0;
  sequence_spec spec;
  std::int32_t n_choices = 1;
  steady_clock::time_point submitted;
  std::string client;            ///< whose turn it takes
  std::string tenant, client_id; ///< for pictures
  std::int32_t priority = 0;
  client_limits limits; ///< of its client
  /// What an earlier run has drawn, an entry for each choice; null: the request is new.
  std::shared_ptr<const std::vector<made_choice>> made;

  std::span<const std::int32_t> made_of(std::int32_t choice) const {
    if (made == nullptr) return {};
    return (*made)[static_cast<std::size_t>(choice)].tokens;
  }
  bool is_over(std::int32_t choice) const {
    return made != nullptr && (*made)[static_cast<std::size_t>(choice)].finished;
  }
};
/// batcher -> session: the request is in the queue; tokens will follow.
struct prompt_queued {};
/// batcher -> session: the request was refused, or lost with a failed step.
struct prompt_failed {
  request_error why;
};
/// batcher -> session: the scores of the prompt's tokens but the first, before any token of the
/// output.
struct prompt_scored {
  std::shared_ptr<const std::vector<prompt_score>> scores;
};
using pooled_values = std::shared_ptr<const std::vector<float>>;
/// batcher -> session: what the request wants of its prompt's hidden states; it is over.
struct prompt_pooled {
  pooled_values values;
  steady_clock::time_point scheduled; ///< when it first entered a step
  std::int32_t cached_tokens = 0;     ///< prompt tokens whose KV was cached at admission
};
/// batcher -> session: one token of one choice.
struct token_ready {
  std::int32_t choice = 0;
  std::int32_t token = 0;
  bool stopped = false; ///< `token` is an end id or stop id
  bool length = false;  ///< `token` is the last that the limits allow
  float logprob = 0;
  std::vector<std::pair<std::int32_t, float>> top; ///< most likely first
  steady_clock::time_point scheduled;              ///< when the choice first entered a step
  std::int32_t cached_tokens = 0; ///< prompt tokens whose KV was cached at admission
};
/// session -> batcher: a stop string ended the choice; its further tokens are not wanted.
struct finish_choice {
  request_id request = 0;
  std::int32_t choice = 0;
};
/// session -> batcher: the request was cancelled, timed out or aborted; release what it holds.
struct release_request {
  request_id request = 0;
};
/// port -> session -> batcher: stop scheduling the request, because its reader is slow.
struct pause_request {
  request_id request = 0;
};
/// port -> session -> batcher: schedule the request again.
struct resume_request {
  request_id request = 0;
};

/// session -> grammar compiler: compile this; answered by grammar_ready.
struct compile_grammar {
  std::string client; ///< whose turn it takes
  config::grammar_spec spec;
  std::vector<std::int32_t> markers;            ///< control tokens that count as their text
  std::shared_ptr<std::atomic<bool>> abandoned; ///< set once nobody waits for the answer
};
/// grammar compiler -> session: the grammar, or why there is none.
struct grammar_ready {
  grammar_answer_ptr answer;
};
/// session -> itself: `structured.wait_timeout` has passed since it ordered its grammar.
struct grammar_overdue {};
/// grammar compiler -> itself: compile the next one.
struct compile_next {};

/// batcher -> kv_allocator: one change of leases, applied in the order of its members.
struct kv_change {
  bool reset = false;        ///< the device lost its KV: every lease ends, nothing stays cached
  std::int32_t n_blocks = 0; ///< with a reset: the blocks that the device has from now on
  std::vector<lease_reuse> reuses; ///< leases that begin with a match of the last answer
  std::vector<lease_growth> grows; ///< blocks to add to a lease (begun when unknown)
  std::vector<lease_fork> forks;   ///< leases that begin by sharing another's first blocks
  std::vector<lease_copy> copies;  ///< leases that get one more block
  std::vector<prefix_insert> prefix_inserts; ///< full blocks that finished steps have computed
  std::vector<sequence_id> drops;            ///< leases that end
  std::vector<prefix_query> queries;         ///< answered by `matches`
};
/// kv_allocator -> batcher: the answer to a kv_change.
struct kv_grant {
  std::vector<std::int32_t> blocks;  ///< ids for all of `grows`, one after the other
  std::vector<std::int32_t> copies;  ///< ids for `copies`, in their order
  std::vector<prefix_match> matches; ///< for `queries`, in their order
  std::vector<block_spill> spills;   ///< to be copied before the next step's plan is carried out
  std::int64_t free_blocks = 0;      ///< blocks that can be granted, cached ones included
  std::int64_t used_blocks = 0;
};

/// port -> batcher: tell who holds what.
struct describe_scheduler {
  std::shared_ptr<const std::function<void(scheduler_snapshot)>> callback;
};
/// port -> batcher: tell what is taken, and by whom.
struct ask_ledger {
  std::shared_ptr<const std::function<void(ledger)>> callback;
};
/// batcher -> executor: tell of which sequences there are states.
struct list_states {};
struct listed_states {
  std::vector<sequence_id> open;
  std::vector<sequence_id> skipped; ///< sequences without a state whose rows would be left out
};
/// batcher -> kv_allocator: tell who has which blocks.
struct describe_leases {};
/// kv_allocator -> batcher: the leases, and a picture without its sequences.
struct kv_leases {
  struct lease {
    sequence_id id = 0;
    std::string blocks;
    std::int64_t n_blocks = 0;
    std::int64_t n_first = 0; ///< of these, those that no lease before it in the list has
  };
  std::vector<lease> leases;          ///< by rising id
  std::int64_t n_pinned_by_child = 0; ///< blocks that no lease has, and that used ones follow
  scheduler_snapshot snapshot;
};

/// batcher -> executor: a sequence enters the running set, for the first time or again after a
/// preemption.
struct open_sequence {
  sequence_id id = 0;
  sequence_spec spec;
  std::vector<std::int32_t> output; ///< tokens drawn so far
  std::vector<std::int32_t> blocks; ///< blocks that its table begins with, computed already
};
struct block_copy {
  std::int32_t from = 0, to = 0;
};
/// batcher -> executor: one step, prepared while the one before it runs. A decode row names no
/// token: it takes the token that was drawn last for its sequence.
struct step_plan {
  std::uint64_t generation = 0; ///< the life of the executor that the plan is for; see load_model
  std::uint64_t number = 0;
  std::vector<sequence_id> closes; ///< sequences to forget, before anything else
  std::vector<open_sequence> opens;
  std::vector<lease_growth> grows;  ///< blocks added to tables
  std::vector<std::int32_t> blocks; ///< ids for `grows`, one after the other
  std::vector<planned_row> rows;    ///< no sequence twice
  std::vector<block_copy> copies;   ///< on the device, before anything else is written to it
  std::vector<block_spill> spills;  ///< copied to host memory before the loads ...
  std::vector<block_load> loads;    ///< ... which are copied to the device before the rows
};
using step_plan_ptr = std::shared_ptr<const step_plan>;

/// batcher -> executor, ahead of the plans that wait: these sequences leave; steps that have not
/// begun skip their rows.
struct skip_sequences {
  std::uint64_t generation = 0; ///< as in step_plan
  std::vector<sequence_id> ids;
};

struct drawn_token {
  sequence_id id = 0;
  std::int32_t token = 0;
  bool stopped = false; ///< an end id or stop id: the executor skips the sequence from now on
  float logprob = 0;
  /// Index into step_result::top; of a pooled prompt, which has no token, into
  /// step_result::pooled.
  std::int32_t first_top = 0;
  std::int32_t n_top = 0;
  bool no_allowed_token =
      false; ///< the output's rules let no token through; the sequence cannot go on
};
/// A prompt token that a step has scored.
struct scored_token {
  sequence_id id = 0;
  std::int32_t position = 0; ///< of the token in its sequence
  float logprob = 0;
  std::int32_t first_top = 0; ///< index into step_result::top
  std::int32_t n_top = 0;
};
/// executor -> batcher: the answer to a step plan.
struct step_result {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  bool ok = true;
  std::string detail;               ///< why the step failed, when not ok
  bool device_is_lost = false;      ///< and with it every further step
  double seconds = 0;               ///< how long the step took
  std::vector<drawn_token> drawn;   ///< in the order of rows; skipped ones are absent
  std::vector<sequence_id> skipped; ///< in the order of rows: nothing of these was computed
  std::vector<scored_token> scored; ///< in the order of rows and positions
  std::vector<std::pair<std::int32_t, float>> top;
  std::vector<pooled_values> pooled; ///< of the prompts in `drawn` that are pooled
  std::int64_t memory_used_bytes = 0;
  double copy_seconds = 0;                       ///< of `seconds`, for spills and loads
  std::shared_ptr<const stream_report> streamed; ///< now and then, where weights are streamed
};
using step_result_ptr = std::shared_ptr<const step_result>;

/// batcher -> offloader: bring these blocks to host memory; answered by blocks_fetched.
struct fetch_blocks {
  std::uint64_t fetch_id = 0;
  std::vector<block_key> keys; ///< of blocks that follow each other
  /// From then on nothing more is read for it, and the answer is what is there.
  steady_clock::time_point until;
};
/// offloader -> batcher: the first of the blocks that were asked for, perhaps none. batcher ->
/// itself, later: the fetch is given up.
struct blocks_fetched {
  std::uint64_t fetch_id = 0;
  std::vector<host_block> blocks;
  double seconds = 0; ///< that the tiers spent on them, without what was asked before
  bool given_up = false;
};
/// batcher -> offloader: a prompt waits that will want these blocks.
struct prefetch_blocks {
  std::vector<block_key> keys;
};
/// batcher -> offloader: the executor has copied these blocks to host memory.
struct blocks_spilled {
  std::vector<std::pair<block_identity, host_block>> blocks;
};
/// supervisor -> offloader: a model's KV blocks have tiers from now on; take the memory and open
/// the file.
struct open_tiers {
  std::shared_ptr<offloader_core> core;
};
/// weight ring -> offloader, through its offloader_client: run the transfers that have been ordered
/// so far, and let the next ones begin as soon as they are ordered (see io_threads). The ring waits
/// for the end of a transfer by the marker of its copy; no message comes back.
struct fetch_weights {
  std::uint64_t number = 0; ///< of the order (io_threads)
};
/// supervisor -> offloader, once the offloader_client sends to it: serve the orders that were sent
/// to the offloader which it replaces.
struct serve_orders {};

/// executor -> itself: begin the oldest step that waits.
struct run_next {};
/// executor -> itself: the device has computed this step, or refused to.
struct step_computed {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
};

/// supervisor -> executor: begin this life: load the model, or load it again.
struct load_model {
  std::uint64_t generation = 0;
  /// A model that is loaded stays loaded, and only the sequences are forgotten.
  bool keep_weights = false;
};
/// executor -> supervisor: the model is loaded and steps of this life can run.
struct model_loaded {
  std::uint64_t generation = 0;
  runner_info info;
};
/// executor -> supervisor: the model could not be loaded.
struct load_failed {
  std::uint64_t generation = 0;
  std::string detail;
  bool device_is_lost = false; ///< and with it every further load
};
/// executor -> supervisor: a step failed and the runner is gone; it waits for load_model.
struct executor_broken {
  std::uint64_t generation = 0;
  std::string detail;
  bool device_is_lost = false; ///< and with it every further load
};
/// supervisor -> itself, later: a restart is due.
struct wake_supervisor {};

/// port -> supervisor: deadlines are waiting, look at the clock from now on.
struct watch_deadlines {};
/// supervisor -> itself, every tick: look at the clock.
struct check_deadlines {};
/// port -> supervisor: look whether a drain has ended already.
struct check_drained {};
/// port -> supervisor: end every request with `why`.
struct abort_all_requests {
  request_error why;
};
/// engine -> supervisor: stop every actor, then end.
struct stop_engine {};

} // namespace twill::actors
