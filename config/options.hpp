// Every option of twill as plain structs: name, default, unit, meaning. The TOML table [x] maps to
// the member x; loading and validation are in config/load.hpp.
//
// A plain value: built once in main(), then read only; any thread may read it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "config/base/units.hpp"

namespace twill::config {

using std::chrono::milliseconds;

/// [model]: what is served.
struct model_options {
  std::string path;             ///< GGUF file, folder or dummy:PRESET; empty: `twill default-model`
  std::string name;             ///< id shown to clients; empty: the model's own name
  std::string compute = "auto"; ///< auto | f32 | bf16 | int8 | w8a8: how products are computed
  std::string chat_template;    ///< file with a Jinja template; empty: the model's own
};

/// [kv]: the key-value cache.
struct kv_options {
  std::int64_t memory_bytes = 0;  ///< hard cap of all KV blocks, bytes; 0: a share of free memory
  std::int32_t block_tokens = 16; ///< positions per block, power of two, 8..256
  std::string type = "auto"; ///< auto | f32 | f16 | bf16 | int8: element type of keys and values
  bool prefix_cache = true;  ///< keep computed prefixes for prompts that begin with the same tokens
};

/// [scheduler]: what one step may hold.
struct scheduler_options {
  /// Tokens of one forward pass (prefill chunks + decodes); 0: 512, or as planned where weights are
  /// streamed.
  std::int32_t max_step_tokens = 0;
  /// Of these, tokens of prompts in a step that decodes as well; 0: by how long steps take, or as
  /// planned where weights are streamed.
  std::int32_t mixed_prompt_tokens = 0;
  std::int32_t max_running = 256;      ///< sequences in the running set
  std::int32_t max_queued = 1024;      ///< requests waiting before new ones are refused (429)
  std::int32_t max_context_tokens = 0; ///< prompt + output per sequence; 0: the model's own limit
};

/// [device]: where kernels run.
struct device_options {
  std::string kind = "auto";     ///< auto | host | cuda
  std::int64_t memory_bytes = 0; ///< budget for weights, KV and workspace, bytes; 0: no cap of ours
  std::int32_t threads = 0;      ///< host compute threads; 0: the cores this process may use
  std::int32_t link_gbps =
      0; ///< simulated: copies to the device go at this many GB/s; 0: as they go
};

/// [offload]: models larger than the device. Weights that do not live there are streamed.
struct offload_options {
  std::int32_t device_percent = -1; ///< of the weights' bytes at home on the device; -1: what fits
  std::int32_t host_percent = -1;   ///< on the host, the rest on disk; -1: what fits
  std::string dir;                  ///< of the disk tier's file; empty: the temporary folder
  std::string reads = "direct";     ///< direct | cached: past the page cache or through it
  std::int32_t ring_layers = 3;     ///< layers in device memory or on their way
  bool sep_layer = false;           ///< attention and MLP of a layer travel apart
  bool pin_weight = true;           ///< of the host tier, where the device is another chip
  std::int32_t ring_squares = 12;   ///< KV images in device memory or on their way
  std::int32_t io_threads = 4;      ///< transfers under way at once
  std::int32_t verify_every = 4;    ///< reads from disk per comparison with a checksum
  std::int64_t host_memory_bytes = 0;       ///< cap of the host tier, bytes; 0: what is available
  std::int32_t typical_prompt_tokens = 512; ///< requests that a daemon's plan is made for
  std::int32_t typical_output_tokens = 128;
};

/// [server]: sockets.
struct server_options {
  std::string listen = "127.0.0.1:8080";  ///< HOST:PORT; port 0 picks a free one
  std::int32_t threads = 1;               ///< socket threads
  std::int32_t max_connections = 20000;   ///< open sockets; more are closed at accept
  std::int64_t max_body_bytes = 16 * mib; ///< HTTP request body
  std::int64_t max_frame_bytes = 4 * mib; ///< one WebSocket message
  std::int64_t max_write_queue_bytes =
      1 * mib;                              ///< unsent output of one socket before it is cut off
  milliseconds idle_timeout{300000};        ///< silence after which a socket is pinged, then closed
  milliseconds header_timeout{30000};       ///< time to receive a whole request
  milliseconds slow_reader_timeout{30000};  ///< paused this long: cut off with an error
  milliseconds drain_timeout{30000};        ///< SIGTERM: streams may finish within this
  std::vector<std::string> api_keys;        ///< non-empty: a Bearer key is required
  std::int32_t max_streams_per_socket = 32; ///< lanes (`stream_id`) of one WebSocket
};

/// [limits]: what one request may ask.
struct limit_options {
  std::int32_t max_choices = 16;        ///< `n`
  std::int32_t max_logprobs = 20;       ///< alternatives per token
  std::int32_t max_stop_strings = 16;   ///< `stop` entries
  std::int32_t default_max_tokens = 0;  ///< chat without max_tokens; 0: up to the context limit
  milliseconds request_timeout{600000}; ///< from submit to last token; 0: none
};

/// [batches]: files of requests that run beside interactive ones (/v1/files, /v1/batches).
struct batch_options {
  std::int32_t max_running = 4;            ///< sequences of all batches under way at once
  std::string folder;                      ///< where files are kept; empty: a temporary one
  std::int64_t max_folder_bytes = 1 * gib; ///< all files together
};

/// [log]
struct log_options {
  std::string level = "info"; ///< trace | debug | info | warn | error | off
};

struct options {
  model_options model;
  kv_options kv;
  scheduler_options scheduler;
  device_options device;
  offload_options offload;
  server_options server;
  limit_options limits;
  batch_options batches;
  log_options log;
};

} // namespace twill::config
