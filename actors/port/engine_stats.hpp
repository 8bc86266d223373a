// engine_stats: the state and the counters of an engine, of its tenants and of its models. Plain
// values, copied while the engine runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace twill::actors {

enum class engine_state {
  loading,    ///< the model is being loaded for the first time
  ready,      ///< requests are served
  restarting, ///< the engine recovers from a failure; requests wait in the queue
  stalled,    ///< a step has not ended for longer than `scheduler.watchdog`
  draining,   ///< requests under way may end, new ones are refused
  failed,     ///< requests are refused; unless the first load failed, another try follows
  /// The device has failed, and only a new process can use it again: requests have ended or will
  /// end soon. The owner of the engine calls abort_all() until no request is left, and ends the
  /// process.
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

} // namespace twill::actors
