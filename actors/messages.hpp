// Every message that actors exchange, as plain value structs without CAF.
//
// A message is named for the fact or the order that it carries. A message is small, or it is a
// shared handle to something immutable: a prompt, a step plan and a step result are each built once
// and never copied. actors/interfaces.hpp lists which actor takes which message.
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

#include "actors/executor/runner_info.hpp"
#include "actors/kv/prefix_query.hpp"
#include "actors/kv/spilled_block.hpp"
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

/// The part of a sequence that never changes. Batcher and executor share it.
struct sequence_spec {
  token_ids prompt;
  std::shared_ptr<const config::sampling_params> sampling;
  token_ids stop_ids;       ///< end ids (unless ignored) and the request's stop ids, ascending
  std::uint64_t seed = 0;   ///< seed of this choice's random draws
  std::int32_t max_new = 0; ///< the most output tokens

  /// the grammar that the output must follow; null: any output is allowed
  std::shared_ptr<const output_rules> rules;
  /// Token sequences that must not occur in the output; null: none.
  std::shared_ptr<const std::vector<std::vector<std::int32_t>>> bad_words;
  /// A bitmap of the tokens that may be drawn; null: all tokens. Never set together with `rules`.
  std::shared_ptr<const std::vector<std::uint32_t>> allowed;
  std::int32_t prompt_logprobs = -1; ///< alternatives for each prompt token; -1: no scores
  /// the scope in which cached prefixes are looked up (kv/cache_scope.hpp)
  std::uint64_t cache_scope = 0;
  /// if not none: the sequence's only draw is a vector and no token
  actors::pooling pooling = actors::pooling::none;

  bool scores_prompt() const { return prompt_logprobs >= 0; }
  bool is_pooled() const { return pooling != actors::pooling::none; }
  /// Whether each prompt token must be computed in a step, since its logits or hidden state are
  /// needed. The prompt of such a sequence uses no cached KV.
  bool needs_all_rows() const { return scores_prompt() || pooling == actors::pooling::mean; }
};

/// A prompt token's log-probability given the tokens before it.
struct prompt_score {
  float logprob = 0;
  std::vector<std::pair<std::int32_t, float>> top; ///< most likely first
};

/// port -> session: begin the request.
struct start_request {
  std::optional<request_error> refusal; ///< why the port does not admit the request
};
/// text pool (the threads that tokenize) -> session: the prompt with its token ids, or with the
/// reason why it could not be encoded. The receiver is the only owner.
struct encoded_prompt; // in actors/session/prompt.hpp
using encoded_prompt_ptr = std::shared_ptr<encoded_prompt>;
/// port -> session: end the request without a further event.
struct cancel_request {};
/// supervisor -> session: the deadline has passed; end the request with timed_out.
struct deadline_passed {};
/// supervisor -> session -> batcher: end the request with queue_timed_out, unless a sequence of it
/// runs or has run.
struct waited_too_long {
  request_id request = 0;

  static request_error error() {
    return {
        errc::queue_timed_out,
        "the request waited for longer than `scheduler.queue_timeout` for its turn; retry later",
        ""};
  }
};
/// supervisor -> session: end the request with `why`.
struct abort_request {
  request_error why;
};

/// The limits of one client in the scheduler; 0 means that the client has no limit of its own.
struct client_limits {
  std::int32_t weight = 1;
  std::int32_t max_running = 0; ///< the most running sequences
  std::int32_t max_queued = 0;  ///< the most waiting requests
};

/// session -> batcher: queue this request; choice i is drawn with seed + i.
struct submit_prompt {
  request_id request = 0;
  sequence_spec spec;
  std::int32_t n_choices = 1;
  steady_clock::time_point submitted;
  std::string client;            ///< the client whose turn the request uses (request::client)
  std::string tenant, client_id; ///< shown in scheduler_snapshot
  std::int32_t priority = 0;
  client_limits limits; ///< the limits of `client`
  /// The output that an earlier run has drawn, one entry for each choice; null: the request is new.
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
/// batcher -> session: the request was refused, or lost because a step failed.
struct prompt_failed {
  request_error why;
};
/// batcher -> session: the scores (log-probabilities) of all prompt tokens but the first. This
/// message comes before any token of the output.
struct prompt_scored {
  std::shared_ptr<const std::vector<prompt_score>> scores;
};
using pooled_values = std::shared_ptr<const std::vector<float>>;
/// batcher -> session: the pooled hidden states that the request asks for. The request is over.
struct prompt_pooled {
  pooled_values values;
  steady_clock::time_point scheduled; ///< when the request first entered a step
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
/// session -> batcher: a stop string ended the choice; no further tokens of it are wanted.
struct finish_choice {
  request_id request = 0;
  std::int32_t choice = 0;
};
/// session -> batcher: the request was cancelled, timed out or aborted; release all that it holds.
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

/// session -> grammar compiler: compile this grammar; answered by grammar_ready.
struct compile_grammar {
  std::string client; ///< whose turn it takes
  config::grammar_spec spec;
  std::vector<std::int32_t> markers; ///< control tokens that the grammar treats as their text
  std::shared_ptr<std::atomic<bool>> abandoned; ///< set once no session waits for the answer
};
/// grammar compiler -> session: the grammar, or why there is none.
struct grammar_ready {
  grammar_answer_ptr answer;
};
/// session -> itself: `structured.wait_timeout` has passed since the session ordered its grammar.
struct grammar_overdue {};
/// grammar compiler -> itself: compile the next grammar that waits.
struct compile_next {};

/// batcher -> kv_allocator: the batcher has changed leases. The parts are applied in the order of
/// the members. A change only uses blocks that the batcher was granted before, so it is not
/// answered.
struct kv_change {
  /// The device lost its KV or has another size: every lease ends, granted blocks are taken back,
  /// and nothing stays cached.
  bool reset = false;
  std::int32_t n_blocks = 0; ///< with a reset: the blocks that the device has from now on
  std::vector<prefix_insert> prefix_inserts; ///< full blocks that finished steps have computed
  std::vector<sequence_id> drops;            ///< leases that end
  std::vector<lease_reuse> reuses; ///< leases that begin with a prefix_match of the last kv_grant
  std::vector<lease_growth> grows; ///< blocks to add to a lease; an unknown lease is begun
  std::vector<lease_fork> forks; ///< leases that begin by sharing the first blocks of another lease
  std::vector<lease_copy> copies; ///< leases that get one more block, as the target of a copy
  /// the blocks for all of `grows`, concatenated, and then those for `copies`
  std::vector<std::int32_t> blocks;
};
/// batcher -> kv_allocator: look up the prefixes of sequences that may be admitted next, and grant
/// blocks ahead of their use. The batcher sends the next request only after the answer has come.
struct block_request {
  std::vector<prefix_query> queries;
  /// Blocks for decodes, which have priority over those of the queries. If negative, the batcher
  /// has -n_ahead granted blocks to spare, and that many fewer are granted for the queries.
  std::int64_t n_ahead = 0;
  /// Blocks to grant in addition, if the sequences of the queries can get all that they lack.
  std::int64_t n_more = 0;
};
/// kv_allocator -> batcher: the answer to a block_request.
struct kv_grant {
  /// Blocks that the batcher may give to sequences. There may be fewer than were asked for, because
  /// blocks of kept matches are not evicted.
  std::vector<std::int32_t> blocks;
  /// Answers to the queries, in their order. The list ends with the first sequence that lacks more
  /// blocks than can be granted; the match of that sequence is not kept (prefix_match::kept).
  std::vector<prefix_match> matches;
  /// blocks to be copied to host memory before the next step plan runs
  std::vector<block_spill> spills;
  /// Free and cached blocks that are not granted. Blocks of kept matches are counted too, although
  /// they cannot be granted before the next request.
  std::int64_t free_blocks = 0;
};

/// port -> batcher: report which sequences hold which blocks, for an administrator.
struct describe_scheduler {
  std::shared_ptr<const std::function<void(scheduler_snapshot)>> callback;
};
/// port -> batcher: report which resources are taken, and by which owners.
struct ask_ledger {
  std::shared_ptr<const std::function<void(ledger)>> callback;
};
/// batcher -> executor: list the sequences for which the executor keeps states.
struct list_states {};
struct listed_states {
  std::vector<sequence_id> open;
  /// sequences without a state whose rows the executor would skip
  std::vector<sequence_id> skipped;
};
/// batcher -> kv_allocator: report which leases have which blocks.
struct describe_leases {};
/// kv_allocator -> batcher: the leases (which sequence has which blocks), and a scheduler_snapshot
/// with the numbers of blocks. The batcher adds the list of sequences to the snapshot.
struct kv_leases {
  struct lease {
    sequence_id id = 0;
    std::string blocks;
    std::int64_t n_blocks = 0;
    std::int64_t n_first = 0; ///< blocks of this lease that no earlier lease of the list has
  };
  std::vector<lease> leases; ///< by rising id
  /// blocks that no lease has, but that precede a used block in the prefix tree
  std::int64_t n_pinned_by_child = 0;
  scheduler_snapshot snapshot;
};

/// batcher -> executor: a sequence enters the running set, for the first time or again after a
/// preemption.
struct open_sequence {
  sequence_id id = 0;
  sequence_spec spec;
  std::vector<std::int32_t> output; ///< tokens drawn so far
  /// blocks at the beginning of its block table; their KV is computed already
  std::vector<std::int32_t> blocks;
};
struct block_copy {
  std::int32_t from = 0, to = 0;
};
/// batcher -> executor: one step, prepared while the step before it runs. The plan does not name
/// the input token of a decode: it is the token that was drawn last for the sequence.
struct step_plan {
  std::uint64_t generation = 0; ///< the executor generation that the plan is for; see load_model
  std::uint64_t number = 0;
  std::vector<sequence_id> closes; ///< sequences whose states are removed, before anything else
  std::vector<open_sequence> opens;
  std::vector<lease_growth> grows;  ///< blocks added to block tables
  std::vector<std::int32_t> blocks; ///< ids for `grows`, concatenated
  std::vector<planned_row> rows;    ///< rows to compute; no sequence occurs twice
  /// block copies on the device, before anything else is written to it
  std::vector<block_copy> copies;
  std::vector<block_spill> spills; ///< blocks copied to host memory, before the loads
  /// blocks copied from host memory to the device, before the rows run
  std::vector<block_load> loads;
};
using step_plan_ptr = std::shared_ptr<const step_plan>;

/// batcher -> executor: these sequences leave, and steps that have not begun compute nothing for
/// them. This message overtakes step plans that wait.
struct skip_sequences {
  std::uint64_t generation = 0; ///< executor generation, as in step_plan
  std::vector<sequence_id> ids;
};

struct drawn_token {
  sequence_id id = 0;
  std::int32_t token = 0;
  /// `token` is an end id or stop id; the executor skips the sequence from now on
  bool stopped = false;
  float logprob = 0;
  /// The index in step_result::top of the first alternative to this token. For a request for an
  /// embedding, which draws no token: the index of the embedding in step_result::pooled.
  std::int32_t first_top = 0;
  std::int32_t n_top = 0;
  bool no_allowed_token = false; ///< The grammar allows no token here; the sequence cannot go on.
};
/// The score of one prompt token, computed by a step.
struct scored_token {
  sequence_id id = 0;
  std::int32_t position = 0; ///< position of the token in its sequence
  float logprob = 0;
  std::int32_t first_top = 0; ///< index into step_result::top
  std::int32_t n_top = 0;
};
/// executor -> batcher: the answer to a step plan.
struct step_result {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  bool ok = true;
  std::string detail;          ///< why the step failed, when not ok
  bool device_is_lost = false; ///< the device cannot be used any more: every further step fails too
  double seconds = 0;          ///< how long the step took
  std::vector<drawn_token> drawn; ///< in the order of the plan's rows; skipped rows are absent
  /// sequences whose rows were not computed, in the order of the plan's rows
  std::vector<sequence_id> skipped;
  std::vector<scored_token> scored; ///< in the order of the plan's rows, then of positions
  std::vector<std::pair<std::int32_t, float>> top;
  std::vector<pooled_values> pooled; ///< results of the pooled prompts in `drawn`
  std::int64_t memory_used_bytes = 0;
  double copy_seconds = 0; ///< the part of `seconds` that spills and loads took
  /// sent from time to time if weights are streamed; else null
  std::shared_ptr<const stream_report> streamed;
};
using step_result_ptr = std::shared_ptr<const step_result>;

/// batcher -> offloader: bring these blocks to host memory; answered by blocks_fetched.
struct fetch_blocks {
  std::uint64_t fetch_id = 0;
  std::vector<block_key> keys; ///< keys of consecutive blocks of a prefix
  /// After this moment no further block is read for this fetch, and the answer holds the blocks
  /// that are there.
  steady_clock::time_point until;
};
/// offloader -> batcher: the blocks that were found, which are the first ones of those asked for
/// and may be none. The batcher also sends this message to itself with a delay, as a timeout of the
/// fetch; `given_up` is set then.
struct blocks_fetched {
  std::uint64_t fetch_id = 0;
  std::vector<host_block> blocks;
  /// seconds that the tiers spent on these blocks, without the time for earlier fetches
  double seconds = 0;
  bool given_up = false;
};
/// batcher -> offloader: a waiting prompt will need these blocks.
struct prefetch_blocks {
  std::vector<block_key> keys;
};
/// batcher -> offloader: the executor has copied these blocks to host memory.
struct blocks_spilled {
  std::vector<std::pair<block_identity, host_block>> blocks;
};
/// supervisor -> offloader: from now on KV blocks of the model may be kept in host memory and on
/// disk (the tiers); allocate this memory and open the file on disk.
struct open_tiers {
  std::shared_ptr<offloader_core> core;
};
/// executor -> itself: begin the oldest waiting step.
struct run_next {};
/// executor -> itself: the device has computed this step, or has failed to.
struct step_computed {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
};

/// supervisor -> executor: begin this generation: load the model, or load it again.
struct load_model {
  std::uint64_t generation = 0;
  /// If the model is loaded already, it stays loaded, and only the sequences are removed.
  bool keep_weights = false;
};
/// executor -> supervisor: the model is loaded, and steps of this generation can run.
struct model_loaded {
  std::uint64_t generation = 0;
  runner_info info;
};
/// executor -> supervisor: the model could not be loaded.
struct load_failed {
  std::uint64_t generation = 0;
  std::string detail;
  bool device_is_lost = false; ///< the device cannot be used any more: every further load fails too
};
/// executor -> supervisor: a step failed and the model runner was destroyed; the executor waits for
/// load_model.
struct executor_broken {
  std::uint64_t generation = 0;
  std::string detail;
  bool device_is_lost = false; ///< the device cannot be used any more: every further load fails too
};
/// supervisor -> itself, later: a restart is due.
struct wake_supervisor {};

/// port -> supervisor: there are requests with deadlines; check the clock regularly from now on.
struct watch_deadlines {};
/// supervisor -> itself, every tick: check the clock.
struct check_deadlines {};
/// port -> supervisor: check whether a drain has ended already.
struct check_drained {};
/// port -> supervisor: end every request with `why`.
struct abort_all_requests {
  request_error why;
};
/// engine -> supervisor: stop every actor, then end.
struct stop_engine {};

} // namespace twill::actors
