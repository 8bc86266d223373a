// Every option of twill as plain structs. The TOML table [x] is the member x of `options`, and each
// key of the table is a member with its default and unit. config/load.hpp loads and validates them;
// config/reference.md, made from config/detail/keys.cpp, describes each key for users.
//
// Options are built once in main() and only read afterwards, by any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "config/base/units.hpp"
#include "config/tenants.hpp"

namespace twill::config {

using std::chrono::milliseconds;

/// [model]: the model that is served.
struct model_options {
  std::string path;                 ///< GGUF file, folder or dummy:PRESET; empty: the default model
  std::string name;                 ///< id shown to clients; empty: the model's own name
  std::string compute = "auto";     ///< auto | f32 | f16 | bf16 | int8 | w8a8
  std::string chat_template;        ///< file with a Jinja template; empty: the model's own
  std::string tool_format = "auto"; ///< auto | hermes | mistral | llama3_json | chatglm3 | json

  bool operator==(const model_options&) const = default;
};

/// `kv.events`, `kv.events_topic`, `kv.events_format`: KV cache events of a model, for routers.
struct kv_event_options {
  std::string endpoint;       ///< ZeroMQ address to bind; empty: nothing is published
  std::string topic;          ///< the first frame of each message
  std::string format = "map"; ///< map | array: how an event is written

  bool operator==(const kv_event_options&) const = default;
};

/// [models.KEY]: one of several models that share the device. Each member has a row in
/// config/detail/model_keys.cpp.
struct shared_model_options {
  std::string key; ///< KEY of its table; also the model's id if `model.name` is empty
  model_options model;
  std::vector<std::string> aliases; ///< further names that requests may use
  bool pin = false; ///< loaded at the start, and kept for as long as the daemon runs
  /// time without a request until the model is put to sleep; 0: no limit
  milliseconds keep_alive{0};
  kv_event_options kv_events;

  const std::string& id() const { return model.name.empty() ? key : model.name; }
  bool operator==(const shared_model_options&) const = default;
};

/// [kv]: the cache of keys and values.
struct kv_options {
  std::int64_t memory_bytes = 0;  ///< memory for all KV blocks; 0: a share of the free memory
  std::int32_t block_tokens = 16; ///< positions of a KV block; a power of two, 8..256
  std::string type = "auto";      ///< auto | f32 | f16 | bf16 | int8
  bool prefix_cache = true;       ///< keep KV blocks for prompts that begin with the same tokens
  bool share_prefixes = false;    ///< tenants share cached prefixes
  /// host memory for cached blocks that leave the device; 0: none
  std::int64_t host_memory_bytes = 0;
  /// disk space for cached blocks that leave host memory; 0: none
  std::int64_t disk_memory_bytes = 0;
  std::string disk_dir;    ///< empty: kv/ in the cache folder
  bool keep = false;       ///< blocks on disk are found after a restart
  kv_event_options events; ///< with several models, each has its own
};

/// [scheduler]: how much one step may compute, and how many requests run or wait.
struct scheduler_options {
  /// The most tokens of one step, prefill chunks and decodes together. 0: 512 or, if weights are
  /// streamed to the device, what serving_plan (models/offload/plan) chooses.
  std::int32_t max_step_tokens = 0;
  /// The most prompt tokens of a step that also decodes. 0: as many as gap_target leaves time for
  /// or, if weights are streamed to the device, what serving_plan (models/offload/plan) chooses.
  std::int32_t mixed_prompt_tokens = 0;
  milliseconds gap_target{40};           ///< target duration of a step that also decodes
  std::int32_t max_running = 256;        ///< sequences that run at once
  std::int32_t max_queued = 1024;        ///< requests that wait; further ones are refused (429)
  std::int32_t max_context_tokens = 0;   ///< prompt + output of a sequence; 0: the model's limit
  milliseconds watchdog{120000};         ///< a step longer than this makes /ready say no; 0: never
  milliseconds restart_delay{1000};      ///< before the second restart in a row; then twice as long
  milliseconds restart_delay_max{30000}; ///< before any restart, and between tries after giving up
  std::string policy = "fair";           ///< fair: clients take turns | fcfs: in order of arrival
  milliseconds queue_timeout{0};         ///< for which a request waits to run; 0: no limit
  std::int32_t max_paused = 1024;        ///< the most requests paused for slow clients
  /// the most bytes of the prompts of all live requests
  std::int64_t max_prompts_bytes = 512 * mib;
  std::int64_t max_text_bytes = 64 * mib; ///< the most bytes of prompts that wait to be tokenized
  milliseconds text_timeout{30000};       ///< the longest time that a prompt waits to be tokenized
  std::string trace; ///< file that records the scheduler's inputs and decisions; empty: none
  std::int64_t trace_size_bytes = 256 * mib; ///< the most bytes of the trace file
};

/// [device]: where kernels run.
struct device_options {
  std::string kind = "auto"; ///< auto | host | cuda; auto: a GPU where build and machine have one
  std::int32_t id = 0;       ///< which GPU
  std::int64_t memory_bytes = 0; ///< for weights, KV and workspace; 0: no limit
  std::int32_t threads = 0;      ///< compute threads of the host; 0: one for each usable core
  std::int32_t link_gbps = 0;    ///< simulated speed of copies to the device; 0: not simulated
};

/// [offload]: models larger than the device, whose weights are streamed from host memory or disk.
struct offload_options {
  /// percentage of the weights' bytes on the device; -1: what fits
  std::int32_t device_percent = -1;
  /// percentage of the weights' bytes in host memory; the rest is on disk; -1: what fits
  std::int32_t host_percent = -1;
  std::string dir;                    ///< for the disk tier's file; empty: the temporary folder
  std::string reads = "direct";       ///< direct: past the page cache | cached: through it
  std::int32_t ring_layers = 3;       ///< layers of streamed weights in device memory
  bool sep_layer = false;             ///< whether attention and MLP are streamed apart
  bool pin_weight = true;             ///< whether the host tier's weights are in pinned memory
  std::int32_t kv_buffers = 12;       ///< device buffers for streamed KV
  std::int32_t io_threads = 4;        ///< transfers that run at once
  std::int32_t verify_every = 4;      ///< one read in this many is compared with its checksum
  std::int64_t host_memory_bytes = 0; ///< size of the host tier; 0: the available memory
  std::int32_t typical_prompt_tokens = 512; ///< of the requests that a daemon's plan is for
  std::int32_t typical_output_tokens = 128;
};

/// [server]: the listeners and their sockets.
struct server_options {
  /// HOST:PORT or unix:/PATH each; port 0 picks a free one.
  std::vector<std::string> listen = {"127.0.0.1:8080"};
  std::string name;            ///< name of this daemon among several, used in ids; empty: none
  std::string admin_listen;    ///< an address of the same form for administrators; empty: none
  std::string agent_listen;    ///< an address or a port for load balancers; empty: none
  std::string user;            ///< user as which the daemon runs after its start; empty: unchanged
  std::string tls_certificate; ///< PEM file; empty: no TLS
  std::string tls_key;         ///< PEM file
  std::int32_t threads = 1;    ///< threads that serve sockets
  std::int32_t max_connections = 20000; ///< open sockets; further ones are closed at accept
  /// the most sockets of one client address; 0: no limit; -1: automatic
  std::int32_t max_per_address = -1;
  std::vector<std::string> trusted_proxies; ///< addresses, networks, "unix"
  bool proxy_protocol = false; ///< connections of trusted proxies begin with a PROXY header
  std::int64_t max_body_bytes = 16 * mib;       ///< of one HTTP request
  std::int64_t max_frame_bytes = 4 * mib;       ///< of one WebSocket message
  std::int64_t max_write_queue_bytes = 1 * mib; ///< unsent output of one socket
  std::int64_t max_output_bytes = 64 * mib;     ///< unsent output of all sockets
  milliseconds idle_timeout{300000};  ///< a socket silent for this long is pinged, then closed
  milliseconds keep_alive{15000};     ///< a stream this silent gets a comment; 0: none
  milliseconds header_timeout{30000}; ///< the longest time for the head of a request to arrive
  /// the least bytes per second at which a body must arrive
  std::int64_t body_rate_bytes = 16 * kib;
  milliseconds slow_reader_timeout{30000};  ///< paused for this long: cut off with an error
  milliseconds drain_timeout{30000};        ///< time for streams to finish after SIGTERM
  std::vector<std::string> api_keys;        ///< when not empty, clients must send one
  std::string keys_file;                    ///< lines "NAME sha256:HEX"; empty: none
  std::vector<std::string> cors_origins;    ///< foreign web pages that may use the API; "*": any
  std::vector<std::string> hosts;           ///< names that this server answers to; "*": any
  std::int32_t max_streams_per_socket = 32; ///< lanes (`stream_id`) of one WebSocket
};

/// [limits]: what one request may ask for.
struct limit_options {
  std::int32_t max_choices = 16;       ///< `n`
  std::int32_t max_logprobs = 20;      ///< alternatives reported for a token
  std::int32_t max_stop_strings = 16;  ///< `stop` entries
  std::int32_t default_max_tokens = 0; ///< of a chat without max_tokens; 0: up to the context limit
  milliseconds request_timeout{600000}; ///< from arrival to the last token; 0: no limit
};

/// [sampling]: defaults for requests that do not set these parameters. -1 stands for the value in
/// the model's own files or, if they have none, for no effect.
struct sampling_options {
  double temperature = -1;        ///< 0 is greedy
  double top_p = -1;              ///< the nucleus' share of probability
  std::int32_t top_k = -1;        ///< keeps the k most likely tokens; 0: all
  double min_p = -1;              ///< share of the likeliest token's probability
  double repetition_penalty = -1; ///< 1: off
};

/// [structured]: outputs that must keep to a schema or a grammar, which is compiled in a process of
/// its own.
struct structured_options {
  milliseconds compile_timeout{5000}; ///< the most processor time for one grammar
  milliseconds wait_timeout{60000};   ///< the longest time that a request waits for its grammar
  std::int64_t compile_memory_bytes = 1 * gib; ///< of the process that compiles
  /// true: a schema with uniqueItems that cannot be enforced is accepted
  bool repeated_items = true;
};

/// [batches]: files of requests that run beside interactive requests (/v1/files, /v1/batches).
struct batch_options {
  std::int32_t max_running = 4;            ///< sequences of all batches that run at once
  std::string folder;                      ///< keeps the files; empty: a temporary folder
  std::int64_t max_folder_bytes = 1 * gib; ///< of all files together
  double tenant_share = 0.5;               ///< of batches, files and bytes that one tenant may hold
};

/// [responses]: the storage of responses, for all protocols.
struct response_options {
  std::string folder;                       ///< keeps them over restarts; empty: in memory
  std::int64_t max_folder_bytes = 1 * gib;  ///< of all tenants together
  std::int64_t max_memory_bytes = 64 * mib; ///< the most bytes in memory if there is no folder
  milliseconds keep{std::chrono::hours(30 * 24)}; ///< since a response was created
  milliseconds grace{0};         ///< how long a response continues after its client has left
  std::string sync = "finished"; ///< never | finished | step: when bytes are forced to the disk
};

/// [log]: which lines are written to standard error, and how.
struct log_options {
  std::string level = "info";  ///< trace | debug | info | warn | error | off
  std::string format = "text"; ///< text | json
};

/// [debug]: twill's checks of itself.
struct debug_options {
  /// checks once a second that finished requests gave back all that they took
  bool check_ledger = false;
};

/// [metrics]: the contents of /metrics.
struct metrics_options {
  std::string compat = "none"; ///< none | vllm | 0.1: further metric names beside twill's own
};

/// [tracing]: spans of requests for an OpenTelemetry collector.
struct tracing_options {
  std::string endpoint; ///< address of OTLP over HTTP; empty: no tracing
  /// share of the traced requests among those for which no caller has decided, 0 to 1
  double sample = 1;
  std::string service = "twill";
  std::vector<std::string> headers; ///< "Name: value", sent to the collector
};

struct options {
  model_options model;
  std::vector<shared_model_options> models; ///< [models.KEY]; with them, `model` is not used
  kv_options kv;
  scheduler_options scheduler;
  device_options device;
  offload_options offload;
  server_options server;
  std::vector<tenant_options> tenants; ///< [[tenants]]; with them, clients must send a key
  limit_options limits;
  sampling_options sampling;
  structured_options structured;
  batch_options batches;
  response_options responses;
  log_options log;
  debug_options debug;
  metrics_options metrics;
  tracing_options tracing;
};

} // namespace twill::config
