// engine_port: the whole interface through which net/ uses the engine. It has plain structs and
// callbacks only, no CAF and no sockets.
//
// Threads: any thread may call any function, and no function waits for the engine. Events of one
// request arrive in order and one at a time, on engine threads. A callback must be quick, must not
// throw, and must not call back into the port while it holds locks of its own. An event with `last`
// set is the final one: the callback of its request is never called again.
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

/// Why a request was refused or failed. Only net/error_map.cpp turns these values into codes of a
/// protocol.
enum class errc {
  invalid_argument, ///< a field breaks its rule; `param` names it
  context_too_long, ///< prompt (+ requested output) exceeds the context limit
  unknown_model,    ///< no model of this name is served
  empty_prompt,     ///< the prompt has no tokens
  no_chat_template, ///< the prompt is a chat, and the model has no chat template
  template_failed,  ///< the chat template refused these messages
  /// the output format that the request asks for cannot be enforced, or took too long to compile
  grammar_refused,
  queue_full,      ///< too many requests wait; the client may retry later
  rate_limited,    ///< the tenant has used up its token budget; the client may retry later
  queue_timed_out, ///< the request waited too long for its turn; the client may retry later
  too_large,       ///< the request can never fit the KV cache
  not_ready,       ///< the model is still loading, or failed to load
  shutting_down,   ///< the daemon is draining and takes no new requests
  timed_out,       ///< the request's deadline passed
  executor_failed, ///< the step that held this request failed
  slow_reader,     ///< the client did not read its output for too long
  not_stored,      ///< the request was to be stored, and the disk could not store it
  cancelled,       ///< a call that names the request has cancelled it
  /// the daemon stops; a stored request goes on from its stored state when the daemon starts again
  interrupted,
  model_changed, ///< the request continues an earlier run, and the model has changed since that run
};

template <class T>
using result = twill::result<T, errc>;

struct request_error {
  errc code = errc::executor_failed;
  std::string message;            ///< "`field` must be ..., got ..."
  std::string param;              ///< the field at fault, or empty
  std::int32_t retry_after_s = 0; ///< > 0: a retry may succeed after so many seconds; 0: unknown

  /// The error of requests that end because the engine has lost its device.
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
  /// The last message is the beginning of the answer, and the output continues where the text of
  /// that message ends. The request is refused with errc::template_failed if the template does not
  /// print that text last.
  bool continue_last = false;
  /// If >= 0: at least this many tokens of the context must stay free for the output. Where the
  /// prompt leaves fewer, whole turns are left out of it, the oldest first; system messages and the
  /// last turn always stay. -1: no turn is left out.
  std::int32_t drop_turns_for_output = -1;
  value_object template_arguments; ///< chat_template_kwargs
  /// The current time as the template sees it (Unix time, seconds), so that the same prompt can be
  /// rendered again later. 0: the time when the template is rendered.
  std::int64_t now_unix_s = 0;
  /// The name of one of the model's chat templates. Empty: `tool_use` if the prompt has tools and
  /// the model has a template of that name, else `default`.
  std::string template_name;
  /// Tokens of an earlier exchange. They are placed before the tokens that the template yields.
  std::vector<std::int32_t> before;
};

/// A prompt of raw text. If `add_special` is set, the special tokens that the model wants around a
/// text, such as BOS, are added.
struct text_prompt {
  std::string text;
  bool add_special = true;
  std::vector<std::int32_t> before; ///< tokens placed before those of the text
};

using token_prompt = std::vector<std::int32_t>;

/// Which of its prompt's final hidden states a request asks for in place of output. These are the
/// states after the model's last norm, which are the input of its head.
enum class pooling : std::uint8_t {
  none, ///< none: the request generates tokens
  last, ///< the hidden state of the last token
  mean, ///< the mean of the hidden states of all tokens
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
  bool parallel = true; ///< the answer may hold more than one call
};

/// The output of one choice that an earlier run of the request has drawn.
struct made_choice {
  std::vector<std::int32_t> tokens; ///< all tokens that were drawn, in order
  bool finished = false; ///< the choice is finished, and the event with its `finish` was delivered
};

struct request_summary; // actors/port/request_summary.hpp

struct request {
  std::string model; ///< empty: the only model
  std::variant<text_prompt, token_prompt, chat_prompt> prompt;
  config::sampling_params sampling;
  std::string tenant; ///< the tenant whose limits and caches apply; empty if there are no keys
  /// The client for fair scheduling: requests of one client are served in order of their arrival,
  /// and different clients get fair shares. All requests with an empty name count as one client.
  std::string client;
  std::int32_t priority = 0; ///< among the requests of one client, a lower value is served earlier
  std::string cache_salt;    ///< only prompts with the same salt share cached KV
  std::string client_id;     ///< X-Request-Id or the protocol's id; used in log lines
  std::chrono::milliseconds timeout{0}; ///< 0: the server's own limit
  /// The moment from which the request's times are counted, if it had to wait for its model to be
  /// loaded. Unset: the call of submit().
  std::chrono::steady_clock::time_point arrived{};
  bool echo_prompt_ids = false; ///< report the prompt's ids in the first event

  /// What the output must look like; refused with errc::grammar_refused when it can't be enforced.
  std::optional<config::grammar_spec> grammar;
  /// the name of the client's field that gave `grammar`, for error messages
  std::string grammar_field;
  tool_choice tools; ///< meaningful for a chat_prompt with tools
  /// The output is delivered in `event::parts` (text, reasoning, calls) instead of `event::text`.
  bool parse_output = false;
  /// The number of alternatives that are reported for each prompt token in `event::prompt_scores`.
  /// 0: only the prompt tokens' own scores; -1: no scores.
  std::int32_t prompt_logprobs = -1;
  /// If > 0: only the last this many prompt tokens are kept. 0: all are kept.
  std::int32_t truncate_prompt_tokens = 0;
  bool truncate_to_first = false; ///< truncation keeps the first tokens instead of the last
  /// `sampling.max_tokens` is an upper bound only. If the prompt leaves room for fewer output
  /// tokens, the output is limited to what fits, instead of a refusal with errc::context_too_long.
  bool shorten_output = false;

  /// If not none: nothing is generated, and `sampling`, `grammar` and `tools` have no effect. The
  /// request has a single event, which holds the `embedding`.
  actors::pooling pooling = actors::pooling::none;
  /// With `pooling`: the size of the embedding that the client expects. The request is refused if
  /// the model's embeddings have another size. 0: any size will do.
  std::int32_t dimensions = 0;
  /// the name of the client's prompt field, for error messages; empty: `prompt`
  std::string prompt_field;

  /// If this request continues an earlier run of itself: the tokens which that run has drawn, with
  /// one entry for each choice. Empty: the request is new. The tokens given here count as output
  /// and have no event again. The first event is sent again, without scores of the prompt. The
  /// tokens that follow are those of an undisturbed run if `sampling.seed` is set to the same value
  /// as in the earlier run. The request is refused with errc::executor_failed if nothing is left to
  /// be drawn, or if the tokens given here cannot be output of this request.
  std::vector<made_choice> made;
  /// The `event::continuity` of the earlier run. If the model's value is now another one, the
  /// request is refused with errc::model_changed. Empty: the value is not compared.
  std::string continues;

  /// Called once, on an engine thread, when the request is over for whatever reason. The call must
  /// be as quick as an event's callback. It does not happen if the engine itself ends first. May be
  /// empty.
  std::function<void(const request_summary&)> on_end;
};

struct token_logprob {
  std::int32_t id = 0;
  std::string bytes; ///< the token's own bytes, which may be only a part of a character
  float logprob = 0;
  bool special = false; ///< a control token, which yields no text unless the request asks for it
};

struct token_output {
  token_logprob chosen; ///< its logprob is meaningful only if log-probabilities were asked for
  std::vector<token_logprob> top; ///< most likely first
};

enum class finish_reason {
  stop,       ///< an end id, a stop string, or the grammar's end
  length,     ///< max_tokens or the context limit
  tool_calls, ///< ended as with `stop`, and the output holds at least one whole call
};

struct usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;     ///< prompt tokens whose KV was reused
  std::int32_t completion_tokens = 0; ///< over all choices
};

enum class output_part_kind {
  text,           ///< `text` continues the answer
  reasoning,      ///< `text` continues the reasoning
  call_begin,     ///< `text` is the function's name
  call_arguments, ///< `text` continues the call's arguments, which are JSON text
  call_end,       ///< the call has ended; `complete` says whether its arguments are complete
};

/// A piece of an output that is parsed into text, reasoning and tool calls.
struct output_part {
  output_part_kind kind = output_part_kind::text;
  std::string text;
  std::int32_t call = -1; ///< which call of the choice, from 0; -1 for text and reasoning
  bool complete = true;   ///< for call_end: whether the arguments are complete
  std::string call_id;    ///< for call_begin: the id that the model gave the call; empty: none
};

/// One thing that happened to a request.
struct event {
  std::int32_t choice = 0;
  bool started = false; ///< the first event: the request is queued; prompt_tokens is known
  /// Set in the first event: a text that identifies all that the output depends on beside the
  /// request itself: the prompt's tokens, the tokens that end the output, the model's files, the
  /// program and the processor.
  std::string continuity;
  std::vector<std::int32_t> prompt_ids; ///< set in the first event if `echo_prompt_ids` was set
  /// the tokens that this event adds, each with its log-probabilities
  std::vector<token_output> tokens;
  /// Set in the first event of a request with prompt_logprobs >= 0: each prompt token with its
  /// log-probability given the tokens before it. The first prompt token has no log-probability
  /// (NaN) and no alternatives.
  std::vector<token_output> prompt_scores;
  /// The vector that `pooling` asked for, as the model computes it: it is not scaled to length 1.
  /// Null in other events.
  std::shared_ptr<const std::vector<float>> embedding;
  /// The parts of the output that became final, if the request set parse_output; `text` is empty
  /// then.
  std::vector<output_part> parts;
  std::string text; ///< Text that became final, in whole characters and without stop strings.
  std::optional<finish_reason> finish; ///< set in the last event of the choice: why it ended
  std::string stop_string;             ///< the stop string that ended the choice; empty: none
  /// the token id that ended the choice (an end id or one of stop_token_ids); -1: none
  std::int32_t stop_token = -1;
  /// the whole request has failed; no event with `finish` follows
  std::optional<request_error> error;
  bool last = false; ///< the request is over; nothing follows
  usage use;
};

using event_callback = std::function<void(event)>;

/// Whether a model has its weights in memory.
enum class model_state {
  ready,    ///< the model serves requests
  asleep,   ///< the model's memory is released; the next request loads the model
  loading,  ///< the model is being loaded
  draining, ///< the model is put to sleep once the requests under way have ended
  unloaded, ///< asleep, and its files are closed
  failed,   ///< the model could not be opened or loaded; `detail` says why
};

struct model_info {
  std::string id;
  std::vector<std::string> other_names; ///< further names by which requests may name the model
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
  std::string detail; ///< the reason, if the state is `failed`
  bool pinned = false;
  std::int64_t need_bytes = 0; ///< device memory that the model takes when it is loaded; 0: unknown
  std::int64_t granted_bytes = 0; ///< device memory that the model may take now
  std::int32_t requests_under_way = 0;
  std::int32_t requests_waiting = 0; ///< requests that wait for the model to be loaded

  /// Whether a request that names the model `wanted` means this model.
  bool answers_to(std::string_view wanted) const {
    return wanted == id ||
           std::find(other_names.begin(), other_names.end(), wanted) != other_names.end();
  }
};

enum class engine_state {
  loading,    ///< the model is being loaded for the first time
  ready,      ///< requests are served
  restarting, ///< the engine recovers from a failure; requests wait in the queue
  stalled,    ///< a step has not ended for longer than `scheduler.watchdog`
  draining,   ///< requests under way may end, new ones are refused
  failed,     ///< requests are refused; unless the first load failed, another try follows
  /// Only a new process can use the device again: requests have ended or will end soon. The owner
  /// of the engine calls abort_all() until no request is left, and ends the process.
  lost,
};

/// A histogram whose buckets are not cumulative: counts[i] observations lie in (bounds[i-1],
/// bounds[i]].
struct histogram {
  std::vector<double> bounds;        // (n) upper bounds
  std::vector<std::uint64_t> counts; // (n + 1) the last bucket is above every bound
  double sum = 0;
};

/// The state of a model that streams its weights: where the weights are, how many bytes were moved
/// since the model was loaded, and the timeline of its last step.
struct stream_report {
  enum class span_kind : std::uint8_t { compute, from_host, from_disk };
  struct span {
    span_kind kind = span_kind::compute;
    /// index of the layer; values after the last layer are parts of the head
    std::int32_t layer = 0;
    float begin_s = 0; ///< seconds since the step began; negative for a transfer that began earlier
    float end_s = 0;
  };
  std::int64_t device_bytes = 0, host_bytes = 0, disk_bytes = 0;
  /// bytes moved to the device since the load
  std::int64_t host_read_bytes = 0, disk_read_bytes = 0;
  double waited_s = 0; ///< seconds for which computing waited for weights
  double step_s = 0;   ///< length of the last step; 0: there was no step yet
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
  /// KV blocks are also kept in host memory or on disk; the kv_ members below are then set
  bool kv_tiers = false;
  std::int64_t kv_host_blocks = 0;
  std::int64_t kv_disk_blocks = 0;
  std::uint64_t kv_host_hits = 0; ///< blocks that came back from host memory
  std::uint64_t kv_disk_hits = 0; ///< blocks that came back from disk
  std::uint64_t kv_spilled_bytes = 0;
  std::uint64_t kv_host_read_bytes = 0;
  std::uint64_t kv_disk_read_bytes = 0;
  std::uint64_t kv_disk_written_bytes = 0;
  std::uint64_t kv_tier_failures = 0; ///< reads and writes that failed
  std::uint64_t kv_tier_dropped = 0;  ///< blocks for which no tier had room in time
  /// hits in a tier that were computed anew, because a fetch would have taken longer
  std::uint64_t kv_fetches_refused = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t steps = 0;
  std::uint64_t finished_stop = 0;
  std::uint64_t finished_length = 0;
  std::uint64_t finished_abort = 0; ///< cancelled by the client
  std::uint64_t finished_error = 0;
  std::uint64_t executor_restarts = 0;
  /// memory reserved on the device; on a host this is address space
  std::int64_t device_memory_reserved_bytes = 0;
  /// the part of the reserved memory that was written and so takes physical memory
  std::int64_t device_memory_touched_bytes = 0;
  std::int64_t device_weights_bytes = 0; ///< the part of the reserved memory that holds weights
  /// for a GPU: memory taken by CUDA and libraries, beside the reserved memory
  std::int64_t device_outside_bytes = 0;
  /// the device is the host: touched memory is part of the process's resident memory
  bool device_is_host = false;
  /// bytes of one KV block; 0 if blocks are never moved off the device
  std::int64_t kv_block_bytes = 0;
  std::shared_ptr<const stream_report> streamed; ///< null: all weights live on the device
  histogram time_to_first_token_seconds;
  histogram inter_token_latency_seconds;
  histogram e2e_request_latency_seconds;
  histogram request_queue_time_seconds;
  histogram request_prefill_time_seconds;
  histogram request_decode_time_seconds;
  histogram request_inference_time_seconds; ///< from admission to the last token
  /// mean of a request; only requests with one choice count
  histogram request_time_per_output_token_seconds;
  histogram request_prompt_tokens;
  histogram request_generation_tokens;
  histogram request_max_num_generation_tokens; ///< output tokens of the request's longest choice
  histogram request_params_n;                  ///< choices that the request asks for
  histogram request_params_max_tokens;         ///< max_tokens of the requests that set it
  histogram iteration_tokens;
  histogram decode_step_seconds;  ///< steps that only decode
  histogram prefill_step_seconds; ///< steps that only read prompts
  histogram mixed_step_seconds;   ///< steps that do both
};

/// What one tenant has used of one model: counters since start and gauges of now. Each request is
/// counted once in each histogram and counter, at the moment it is queued, has its first token, or
/// ends.
struct tenant_stats {
  std::string tenant, model;         ///< tenant is empty if no tenants are configured
  std::int64_t requests_waiting = 0; ///< queued requests that have no token yet
  std::int64_t requests_running = 0; ///< requests that have a token and are not over
  /// prompt tokens of requests that have a token, were scored or were cancelled
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_prompt_tokens = 0; ///< the part of prompt_tokens whose KV was cached
  std::uint64_t generation_tokens = 0;    ///< output tokens of requests that are over
  /// requests that are over, by their status: "stop", "queue_full", ...
  std::map<std::string, std::uint64_t, std::less<>> finished;
  histogram time_to_first_token_seconds;
  histogram time_per_output_token_seconds; ///< mean of a request, from its first token to its last
  histogram e2e_request_latency_seconds;
  histogram request_queue_time_seconds;
};

/// The counters of one model.
struct model_stats {
  std::string model;
  engine_stats stats;
};

/// The number of messages that wait for one kind of actor in a model's engine.
struct mailbox_depth {
  std::string model;
  std::string actor; ///< "batcher", "executor", ...; "session": all sessions together
  std::int64_t depth = 0;
};

/// Which sequences run and wait, and which KV blocks each of them holds, at one moment. Lists of
/// blocks are texts such as "0-12,40".
struct scheduler_snapshot {
  struct sequence {
    std::uint64_t id = 0;
    request_id request = 0;
    std::int32_t choice = 0;
    std::string tenant;
    std::string client_id; ///< request::client_id
    bool running = false;
    bool paused = false;         ///< the sequence is paused, because its client reads slowly
    std::int32_t tokens = 0;     ///< tokens of prompt and output so far
    std::int32_t max_tokens = 0; ///< the most tokens that prompt and output may have
    std::string blocks;          ///< the sequence's blocks, in the order of its positions
    std::int64_t n_blocks = 0;
  };
  std::string model;
  std::vector<sequence> sequences; ///< in order of arrival
  std::vector<sequence> orphans;   ///< sequences that hold blocks but belong to no request: a leak
  std::int64_t total_blocks = 0;
  std::int64_t used_blocks = 0;
  std::int64_t free_blocks = 0;
  std::string cached; ///< blocks that no sequence uses and that stay cached as prefixes
  std::string
      /// Blocks that no sequence holds, but that must stay because a block after them in the prefix
      /// tree is in use.
      pinned_by_child;
};

/// What an administrator may order a model to do.
enum class model_order {
  load,   ///< load the model, as a request for the model would
  sleep,  ///< release the model's memory once the requests under way have ended
  unload, ///< as `sleep`, and also close the model's files, so that the next load opens them anew
};

struct token_piece {
  std::int32_t id = 0;
  std::string bytes;
};

/// What a client needs to know of a tokenizer to build prompts for the model itself.
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

  /// Starts a request. A refusal also arrives as an event, with `error` and `last` set.
  virtual request_id submit(request asked, event_callback on_event) = 0;
  /// Ends a request now. Its blocks are free within one step. Once this call returns, no further
  /// event begins; an event that is already being delivered may still be under way.
  virtual void cancel(request_id id) = 0;
  /// pause() stops scheduling a request whose client reads slowly, and resume() schedules the
  /// request again. Both are idempotent.
  virtual void pause(request_id id) = 0;
  virtual void resume(request_id id) = 0;

  virtual engine_state state() const = 0;
  /// why the engine is not ready; /ready shows this text
  virtual std::string state_detail() const = 0;
  virtual std::vector<model_info> models() const = 0;
  virtual engine_stats stats() const = 0;
  /// One entry for each tenant and model; a pair without any request so far is absent.
  virtual std::vector<tenant_stats> tenants() const { return {}; }
  /// One entry for each model and kind of actor.
  virtual std::vector<mailbox_depth> mailboxes() const { return {}; }
  /// Asks for a snapshot of each scheduler. `callback` is called once, on any thread, perhaps
  /// before this function returns. If the engine ends first, `callback` is destroyed without a
  /// call.
  virtual void describe(std::function<void(std::vector<scheduler_snapshot>)> callback) const {
    callback({});
  }
  /// Asks for a ledger of all resources that requests take and give back: how much of each is
  /// taken, and by which owner. `callback` is called as that of describe() is. Executors answer
  /// between two steps.
  virtual void account(std::function<void(ledger)> callback) const { callback({}); }
  /// The KV event sources, one for each model with `kv.events`. The list does not change while the
  /// engine exists.
  virtual std::vector<kv_event_feed> kv_events() const { return {}; }
  /// The counters of each model. Their sums over all models are those of stats().
  virtual std::vector<model_stats> stats_of_models() const {
    const auto all = models();
    return {{all.empty() ? std::string() : all.front().id, stats()}};
  }
  /// Orders a model to load, sleep or unload. Returns at once with the state that the order led to;
  /// `models()` shows how the order proceeds.
  virtual result<model_info> order_model(const std::string&, model_order) {
    return failure{errc::invalid_argument,
                   "the only model is always loaded; give models as `[models.NAME]` to load them "
                   "and put them to sleep"};
  }

  /// Tokenizer calls run on the caller's thread. They fail with errc::unknown_model if no such
  /// model is served.
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
  /// Ends every request that is still under way, with errc::shutting_down.
  virtual void abort_all() = 0;
};

} // namespace twill::actors
