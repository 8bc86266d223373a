// engine_port: all that net/ knows of the engine. Plain structs, callbacks, no CAF, no sockets.
//
// Threads: any thread may call any function; no function waits for the engine.
// Events of one request arrive in order, one at a time, on engine threads: a callback must be
// quick, must not throw and must not call back into the port while it holds its own locks. After an
// event with a finish or an error that ends the request (`last`), its callback is never called
// again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/port/kv_events.hpp"
#include "config/base/ledger.hpp"
#include "config/base/result.hpp"
#include "config/base/value.hpp"
#include "config/grammar_spec.hpp"
#include "config/sampling.hpp"

namespace twill::actors {

/// Why a request was refused or failed. net/error_map.cpp alone turns these into wire codes.
enum class errc {
  invalid_argument, ///< a field breaks its rule; `param` names it
  context_too_long, ///< prompt (+ requested output) exceeds the context limit
  unknown_model,    ///< no such model is served
  empty_prompt,     ///< the prompt has no tokens
  no_chat_template, ///< chat was asked of a model without a template
  template_failed,  ///< the template refused these messages
  grammar_refused,  ///< the asked-for form of the output cannot be enforced, or took too long to
                    ///< compile
  queue_full,       ///< too many requests wait; the client may retry later
  rate_limited,     ///< the tenant has used its tokens; the client may retry later
  queue_timed_out,  ///< the request waited too long for its turn; the client may retry later
  too_large,        ///< the request can never fit the KV cache
  not_ready,        ///< the model is still loading, or failed to load
  shutting_down,    ///< the daemon drains
  timed_out,        ///< the request's deadline passed
  executor_failed,  ///< the step that held this request failed
  slow_reader,      ///< output was not taken for too long
  not_stored,       ///< the disk takes nothing of a request that is to be stored
  cancelled,        ///< its client has ended it by name
  interrupted,   ///< the daemon stops; what is stored of the request goes on when it starts again
  model_changed, ///< the request was to go on with a model that is another one now
};

template <class T>
using result = twill::result<T, errc>;

struct request_error {
  errc code = errc::executor_failed;
  std::string message;            ///< "`field` must be ..., got ..."
  std::string param;              ///< the field at fault, or empty
  std::int32_t retry_after_s = 0; ///< > 0: when a retry may succeed

  /// Of requests that end because the engine's device is lost.
  static request_error lost_with_device() {
    return {errc::shutting_down,
            "the server lost this request with its device, and ends; retry the request once the "
            "server runs again",
            ""};
  }
};

using request_id = std::uint64_t;

struct chat_prompt {
  value messages; ///< list of {role, content, ...}
  value tools;    ///< list, or null
  bool add_generation_prompt = true;
  /// The last message is the beginning of the answer, which goes on where its text ends. Refused
  /// with errc::template_failed where the template does not print that text last.
  bool continue_last = false;
  /// >= 0: where fewer tokens of the context than this stay free for the output, whole turns are
  /// left out, the oldest first. System messages and the last turn stay. -1: all turns stay.
  std::int32_t drop_turns_for_output = -1;
  value_object template_arguments; ///< chat_template_kwargs
  /// What the template takes for the time, so that the same prompt can be written later; 0: the
  /// time of its writing.
  std::int64_t now_unix_s = 0;
  /// One of the model's chat templates by name; empty: `tool_use` where there are tools and the
  /// model has it, else `default`.
  std::string template_name;
  /// Tokens of an earlier exchange, which stand before those that the template writes.
  std::vector<std::int32_t> before;
};

/// Raw text; BOS and the like are added when the model wants them and `add_special` is set.
struct text_prompt {
  std::string text;
  bool add_special = true;
  std::vector<std::int32_t> before; ///< tokens that stand before those of the text
};

using token_prompt = std::vector<std::int32_t>;

/// What a request wants of its prompt's final hidden states in place of output: after the model's
/// last norm, what its head would see.
enum class pooling : std::uint8_t {
  none, ///< nothing: the request generates
  last, ///< that of the last token
  mean, ///< the mean over all tokens
};

enum class tool_choice_kind {
  automatic, ///< the model decides
  none,      ///< no calls: the answer is text
  required,  ///< at least one call, constrained to the tools' schemas
  named,     ///< a call of `name`, constrained to its schema
};

/// Whether, and which, tools of the chat prompt the answer may or must call.
struct tool_choice {
  tool_choice_kind kind = tool_choice_kind::automatic;
  std::string name;
  bool parallel = true; ///< more than one call may stand in an answer
};

/// What an earlier run of a request has drawn of one choice.
struct made_choice {
  std::vector<std::int32_t> tokens; ///< all of them, in their order
  bool finished = false;            ///< the event with its `finish` was delivered
};

struct request_summary; // actors/port/request_summary.hpp

struct request {
  std::string model; ///< empty: the only model
  std::variant<text_prompt, token_prompt, chat_prompt> prompt;
  config::sampling_params sampling;
  std::string tenant; ///< whose limits and caches count; empty where there are no keys
  /// Who shares a turn: requests of one client are served in their order, clients fairly between
  /// them. Empty counts as one client.
  std::string client;
  std::int32_t priority = 0; ///< a lower one is served earlier, among the requests of its client
  std::string cache_salt;    ///< only prompts of the same salt share cached KV
  std::string client_id;     ///< X-Request-Id or the protocol's id; used in log lines
  std::chrono::milliseconds timeout{0}; ///< 0: the server's own limit
  /// From when its time counts, where it has waited for its model; else from submit().
  std::chrono::steady_clock::time_point arrived{};
  bool echo_prompt_ids = false; ///< report the prompt's ids in the first event

  /// What the output must look like; refused with errc::grammar_refused when it can't be enforced.
  std::optional<config::grammar_spec> grammar;
  std::string grammar_field; ///< what the client's field that gave `grammar` is called, for errors
  tool_choice tools;         ///< meaningful for a chat_prompt with tools
  /// The output comes as `event::parts` (text, reasoning, calls) instead of `event::text`.
  bool parse_output = false;
  /// Alternatives reported per prompt token, in the event with `prompt_scores`; -1: none at all.
  std::int32_t prompt_logprobs = -1;
  /// Only the last so many prompt tokens are kept; 0: all.
  std::int32_t truncate_prompt_tokens = 0;
  bool truncate_to_first = false; ///< the first ones are kept instead
  /// `sampling.max_tokens` is a bound and no wish: where it does not fit beside the prompt, the
  /// output may have the tokens that do, instead of errc::context_too_long.
  bool shorten_output = false;

  /// Nothing is generated: `sampling`, `grammar` and `tools` have no effect, and one event, the
  /// first and last, has the `embedding`.
  actors::pooling pooling = actors::pooling::none;
  /// With `pooling`: how many numbers the client expects; refused where it is another number than
  /// the model has. 0: not asked.
  std::int32_t dimensions = 0;
  std::string prompt_field; ///< what the client's field of the prompt is called; empty: `prompt`

  /// What an earlier run of this very request has drawn, an entry for each choice; empty: the
  /// request is new. The request goes on where that run was: the tokens given here count as output
  /// and have no event again, while the first event comes again, without scores of the prompt. The
  /// same tokens follow as in an undisturbed run where `sampling.seed` is set, and set as it was
  /// then. Refused with errc::executor_failed where nothing is left to be drawn, or where this
  /// cannot be the request's output.
  std::vector<made_choice> made;
  /// `event::continuity` of that run; where the model's is another one now, the request is refused
  /// with errc::model_changed. Empty: not asked.
  std::string continues;

  /// Called once when the request is over, however it ended, on an engine thread; it must be as
  /// quick as an event's callback. Not called where the engine itself ends first. May be empty.
  std::function<void(const request_summary&)> on_end;
};

struct token_logprob {
  std::int32_t id = 0;
  std::string bytes; ///< the token's own bytes; they may be part of a character
  float logprob = 0;
  bool special = false; ///< it controls the model, and yields no text unless asked to
};

struct token_output {
  token_logprob chosen; ///< logprob is meaningful only when log-probabilities were asked for
  std::vector<token_logprob> top; ///< most likely first
};

enum class finish_reason {
  stop,       ///< an end id, a stop string, or the grammar's end
  length,     ///< max_tokens or the context limit
  tool_calls, ///< as stop, and the output holds at least one whole call
};

struct usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;     ///< prompt tokens whose KV was reused
  std::int32_t completion_tokens = 0; ///< over all choices
};

enum class output_part_kind {
  text,           ///< `text` goes on the answer
  reasoning,      ///< `text` goes on the reasoning
  call_begin,     ///< `text` is the function's name
  call_arguments, ///< `text` goes on the arguments, a JSON text
  call_end,       ///< the call is over; `complete` says whether its arguments are
};

/// A piece of an output that is read as text, reasoning and tool calls.
struct output_part {
  output_part_kind kind = output_part_kind::text;
  std::string text;
  std::int32_t call = -1; ///< which call of the choice, from 0; -1 for text and reasoning
  bool complete = true;   ///< call_end
  std::string call_id;    ///< call_begin: the id that the model gave the call; empty: none
};

/// One thing that happened to a request.
struct event {
  std::int32_t choice = 0;
  bool started = false; ///< the first event: the request is queued; prompt_tokens is known
  /// In the first event: names what the output depends on beside the request itself: the prompt's
  /// tokens, those that end it, the model's files, the program and the processor.
  std::string continuity;
  std::vector<std::int32_t> prompt_ids; ///< in the first event when asked for
  std::vector<token_output> tokens;     ///< ids of this step, each with its log-probabilities
  /// Each prompt token with its log-probability given those before it, in the first event of a
  /// request with prompt_logprobs >= 0; the first token's has none (NaN) and no alternatives.
  std::vector<token_output> prompt_scores;
  /// What `pooling` asked for, as the model has it: not scaled to length 1. Null elsewhere.
  std::shared_ptr<const std::vector<float>> embedding;
  /// What became certain of the output, when the request asked for parse_output; `text` is empty
  /// then.
  std::vector<output_part> parts;
  std::string text; ///< text that became certain, in whole characters, without stop strings
  std::optional<finish_reason> finish; ///< this choice is over
  std::string stop_string;             ///< which stop string ended it
  std::int32_t stop_token = -1;        ///< which id ended it (end id or stop_token_ids)
  std::optional<request_error> error;  ///< the whole request is over, no finish follows
  bool last = false;                   ///< the request is over; nothing follows
  usage use;
};

using event_callback = std::function<void(event)>;

/// Whether a model has its weights in memory.
enum class model_state {
  ready,    ///< it serves requests
  asleep,   ///< its memory is given back; the next request loads it
  loading,  ///< it is being loaded
  draining, ///< it is put to sleep once the requests under way have ended
  unloaded, ///< asleep, and its files are closed
  failed,   ///< it could not be opened or loaded; `detail` says why
};

struct model_info {
  std::string id;
  std::vector<std::string> other_names; ///< that requests may use as well
  std::string path;
  std::string family;
  std::string quantization;
  std::int64_t created_unix_s = 0;
  std::int32_t max_model_len = 0;
  std::int32_t vocab_size = 0;
  std::int32_t embedding_size = 0; ///< numbers of event::embedding; 0: unknown
  bool has_chat_template = false;
  config::sampling_params default_sampling;

  model_state state = model_state::ready;
  std::string detail; ///< why it failed
  bool pinned = false;
  std::int64_t need_bytes = 0;    ///< of device memory, when it is loaded; 0: unknown
  std::int64_t granted_bytes = 0; ///< of device memory, that it may take now
  std::int32_t requests_under_way = 0;
  std::int32_t requests_waiting = 0; ///< for the model to be loaded

  /// Whether requests mean this model when they name `wanted`.
  bool answers_to(std::string_view wanted) const {
    return wanted == id ||
           std::find(other_names.begin(), other_names.end(), wanted) != other_names.end();
  }
};

enum class engine_state {
  loading,    ///< for the first time
  ready,      ///< requests are served
  restarting, ///< a failure is being mended; requests wait in the queue
  stalled,    ///< a step has not ended for longer than `scheduler.watchdog`
  draining,   ///< requests under way may end, new ones are refused
  failed,     ///< requests are refused; unless the first load failed, another try follows
  lost, ///< the device failed so that only another process can use it: requests end, or will soon.
        ///< Whoever runs the engine calls abort_all() until none is left, and ends the process
};

/// A latency histogram with cumulative-free buckets: counts[i] observations in (bounds[i-1],
/// bounds[i]].
struct histogram {
  std::vector<double> bounds;        // (n) upper bounds
  std::vector<std::uint64_t> counts; // (n + 1) the last is above every bound
  double sum = 0;
};

/// A model that streams its weights: where they live, what moved since it was loaded, and what its
/// last step did when.
struct stream_report {
  enum class span_kind : std::uint8_t { compute, from_host, from_disk };
  struct span {
    span_kind kind = span_kind::compute;
    std::int32_t layer = 0; ///< or after the layers a part of the head
    float begin_s = 0;      ///< since the step began; transfers may begin before
    float end_s = 0;
  };
  std::int64_t device_bytes = 0, host_bytes = 0, disk_bytes = 0;
  std::int64_t host_read_bytes = 0, disk_read_bytes = 0; ///< moved to the device
  double waited_s = 0;                                   ///< that the compute waited for weights
  double step_s = 0;                                     ///< 0: there was no step yet
  std::vector<span> spans;
};

/// A snapshot of counters since start and gauges of now. Units are in the names.
struct engine_stats {
  engine_state state = engine_state::loading;
  std::int32_t requests_running = 0;
  std::int32_t requests_waiting = 0;
  std::int64_t kv_blocks_total = 0;
  std::int64_t kv_blocks_used = 0;
  std::int32_t kv_block_tokens = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generation_tokens = 0;
  std::uint64_t prefix_cache_queries = 0; ///< prompt tokens looked up, by the first admissions
  std::uint64_t prefix_cache_hits = 0;    ///< prompt tokens looked up whose KV was cached
  bool kv_tiers = false;                  ///< KV blocks also live in host memory or on disk:
  std::int64_t kv_host_blocks = 0;
  std::int64_t kv_disk_blocks = 0;
  std::uint64_t kv_host_hits = 0; ///< blocks that came back from host memory
  std::uint64_t kv_disk_hits = 0; ///< blocks that came back from disk
  std::uint64_t kv_spilled_bytes = 0;
  std::uint64_t kv_host_read_bytes = 0;
  std::uint64_t kv_disk_read_bytes = 0;
  std::uint64_t kv_disk_written_bytes = 0;
  std::uint64_t kv_tier_failures = 0;   ///< reads and writes that failed
  std::uint64_t kv_tier_dropped = 0;    ///< blocks for which no tier had room in time
  std::uint64_t kv_fetches_refused = 0; ///< hits that were computed, because that took less time
  std::uint64_t preemptions = 0;
  std::uint64_t steps = 0;
  std::uint64_t finished_stop = 0;
  std::uint64_t finished_length = 0;
  std::uint64_t finished_abort = 0; ///< cancelled by the client
  std::uint64_t finished_error = 0;
  std::uint64_t executor_restarts = 0;
  std::int64_t device_memory_reserved_bytes = 0; ///< on a host of address space
  std::int64_t device_memory_touched_bytes = 0;  ///< of these, what was written and is taken
  std::int64_t device_weights_bytes = 0;         ///< of those reserved, by weights
  std::int64_t device_outside_bytes = 0; ///< of a GPU, taken by CUDA and libraries beside those
  bool device_is_host = false;     ///< what is touched is part of the process's resident memory
  std::int64_t kv_block_bytes = 0; ///< of one KV block; 0 where blocks stay on the device
  std::shared_ptr<const stream_report> streamed; ///< null: all weights live on the device
  histogram time_to_first_token_seconds;
  histogram inter_token_latency_seconds;
  histogram e2e_request_latency_seconds;
  histogram request_queue_time_seconds;
  histogram request_prefill_time_seconds;
  histogram request_decode_time_seconds;
  histogram request_inference_time_seconds;        ///< from admission to the last token
  histogram request_time_per_output_token_seconds; ///< a request's mean; of one choice alone
  histogram request_prompt_tokens;
  histogram request_generation_tokens;
  histogram request_max_num_generation_tokens; ///< of its longest choice
  histogram request_params_n;                  ///< choices that were asked for
  histogram request_params_max_tokens;         ///< of requests that name `max_tokens`
  histogram iteration_tokens;
  histogram decode_step_seconds;  ///< steps that only decode
  histogram prefill_step_seconds; ///< steps that only read prompts
  histogram mixed_step_seconds;   ///< steps that do both
};

/// What one tenant asked of one model: counters since start and gauges of now. Each request counts
/// once, when it is queued, has its first token, or ends.
struct tenant_stats {
  std::string tenant, model;              ///< the tenant is empty where there are none
  std::int64_t requests_waiting = 0;      ///< queued, without a token
  std::int64_t requests_running = 0;      ///< with a token, and not over
  std::uint64_t prompt_tokens = 0;        ///< of requests with a token, scored or cancelled
  std::uint64_t cached_prompt_tokens = 0; ///< of these, those whose KV was cached
  std::uint64_t generation_tokens = 0;    ///< of requests that are over
  std::map<std::string, std::uint64_t, std::less<>> finished; ///< by "stop", "queue_full", ...
  histogram time_to_first_token_seconds;
  histogram time_per_output_token_seconds; ///< a request's mean, first token to last
  histogram e2e_request_latency_seconds;
  histogram request_queue_time_seconds;
};

/// The counters of one model.
struct model_stats {
  std::string model;
  engine_stats stats;
};

/// Messages that wait for one kind of actor of a model's engine.
struct mailbox_depth {
  std::string model;
  std::string actor; ///< "batcher", "executor", ...; "session": all sessions together
  std::int64_t depth = 0;
};

/// Who has which KV blocks, and who waits, at one moment. Lists of blocks are texts such as
/// "0-12,40".
struct scheduler_snapshot {
  struct sequence {
    std::uint64_t id = 0;
    request_id request = 0;
    std::int32_t choice = 0;
    std::string tenant;
    std::string client_id; ///< request::client_id
    bool running = false;
    bool paused = false;         ///< its reader is slow
    std::int32_t tokens = 0;     ///< of prompt and output
    std::int32_t max_tokens = 0; ///< that these may become
    std::string blocks;          ///< in the order of its positions
    std::int64_t n_blocks = 0;
  };
  std::string model;
  std::vector<sequence> sequences; ///< in the order of their arrival
  std::vector<sequence> orphans;   ///< holders of blocks that belong to no request: a leak
  std::int64_t total_blocks = 0;
  std::int64_t used_blocks = 0;
  std::int64_t free_blocks = 0;
  std::string cached; ///< blocks of prefixes that nobody uses now
  std::string
      pinned_by_child; ///< blocks that nobody holds and that used ones follow in the prefix tree
};

/// What an administrator may tell a model to do.
enum class model_order {
  load,   ///< as a request for it would
  sleep,  ///< give its memory back once the requests under way have ended
  unload, ///< sleep, and close its files, so that the next load opens them anew
};

struct token_piece {
  std::int32_t id = 0;
  std::string bytes;
};

/// What a client needs to know to write prompts for a model by itself.
struct tokenizer_info {
  std::string kind; ///< "gguf gpt2 / smollm", ...
  bool adds_bos = false;
  std::int32_t bos_id = -1, eos_id = -1; ///< -1: the model has none
  std::vector<token_piece> special;      ///< control tokens, by rising id
  std::string chat_template;             ///< Jinja source; empty: the model has none
};

class engine_port {
public:
  virtual ~engine_port() = default;

  /// Starts a request. Refusals, too, arrive as an event with `error` and `last`.
  virtual request_id submit(request asked, event_callback on_event) = 0;
  /// Ends a request now: its blocks are free within one step; its callback hears nothing more
  /// once this returns, except an event already being delivered.
  virtual void cancel(request_id id) = 0;
  /// Stops scheduling a request (its reader is slow) and lets it go on. Idempotent.
  virtual void pause(request_id id) = 0;
  virtual void resume(request_id id) = 0;

  virtual engine_state state() const = 0;
  virtual std::string state_detail() const = 0; ///< why not ready: for /ready
  virtual std::vector<model_info> models() const = 0;
  virtual engine_stats stats() const = 0;
  /// By tenant and model; those that never asked are absent.
  virtual std::vector<tenant_stats> tenants() const { return {}; }
  /// By model and actor.
  virtual std::vector<mailbox_depth> mailboxes() const { return {}; }
  /// Asks for a picture of each scheduler; `callback` is called once, on any thread, perhaps before
  /// this returns. An engine that ends meanwhile destroys it without a call.
  virtual void describe(std::function<void(std::vector<scheduler_snapshot>)> callback) const {
    callback({});
  }
  /// Asks what is taken of all that requests give back, and by whom; as describe(). Executors
  /// answer between two steps.
  virtual void account(std::function<void(ledger)> callback) const { callback({}); }
  /// Of each model with `kv.events`; the same for as long as the engine lives.
  virtual std::vector<kv_event_feed> kv_events() const { return {}; }
  /// The counters of each model; together they are those of stats().
  virtual std::vector<model_stats> stats_of_models() const {
    const auto all = models();
    return {{all.empty() ? std::string() : all.front().id, stats()}};
  }
  /// Returns at once, with the state that the order led to; `models()` shows what becomes of it.
  virtual result<model_info> order_model(const std::string&, model_order) {
    return failure{errc::invalid_argument,
                   "the only model is always loaded; give models as `[models.NAME]` to load them "
                   "and put them to sleep"};
  }

  /// Tokenizer calls run on the caller's thread. An unknown model is errc::unknown_model.
  virtual result<std::vector<std::int32_t>>
  tokenize(const std::string& model, const text_prompt& text, bool parse_special) const = 0;
  virtual result<std::vector<std::int32_t>> tokenize_chat(const std::string& model,
                                                          const chat_prompt& chat) const = 0;
  virtual result<std::string> render_chat(const std::string& model,
                                          const chat_prompt& chat) const = 0;
  virtual result<std::string> detokenize(const std::string& model,
                                         const std::vector<std::int32_t>& ids) const = 0;
  virtual result<std::vector<token_piece>> pieces(const std::string& model,
                                                  const std::vector<std::int32_t>& ids) const = 0;
  virtual result<tokenizer_info> describe_tokenizer(const std::string& model) const = 0;

  /// Refuses new requests from now on; `drained` is called once no request is left.
  virtual void drain(std::function<void()> drained) = 0;
  /// Ends every request that is left with errc::shutting_down.
  virtual void abort_all() = 0;
};

} // namespace twill::actors
