#include "config/detail/keys.hpp"

#include <algorithm>
#include <chrono>

#include "config/base/units.hpp"
#include "config/detail/rules.hpp"

namespace twill::config::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t tib = 1024 * gib;
constexpr std::int64_t most_tokens = 16 * 1024 * 1024;

#define TWILL_MEMBER(member) [](options& o) -> member_address { return &o.member; }
#define TWILL_BYTES(member) [](options& o) -> member_address { return bytes_member{&o.member}; }

// One row for each configuration key. Loading, --set, --print-config and config/reference.md are
// all derived from these rows.
const std::vector<key>& rows() {
  static const std::vector<key> table{
      // clang-format off
      {"model.path", TWILL_MEMBER(model.path), "", any_path(),
       "The GGUF file, Hugging Face folder, hf:ORG/NAME[:FILE] (a model of Hugging Face's hub, which is "
       "fetched when it is not in its cache) or dummy:PRESET that is served; ~ is the home. When empty, it "
       "is the model that `twill default-model` names."},
      {"model.name", TWILL_MEMBER(model.name), "", any_name(),
       "The id that clients see. When empty, it is the model's own name."},
      {"model.compute", TWILL_MEMBER(model.compute), "", one_of({"auto", "f32", "f16", "bf16", "int8", "w8a8"}),
       "How matrix products are computed. On a GPU auto is f16 for weights of f16 and for quantised "
       "weights whose config.json says float16, else bf16; f16 may overflow in a model that was "
       "trained in bf16. Elsewhere auto is int8 for quantised weights, bf16 for 16-bit weights where "
       "the processor multiplies bf16, else f32. Of weights of 32 bits it is f32. f16 needs a GPU. "
       "w8a8 is int8 with all weights rounded to 8 bits "
       "while they are loaded: prompts and batches are faster, and results a little less precise. "
       "On a GPU w8a8 keeps weights of 4 bits in twice the memory, and up to 128 columns of activations "
       "share a scale; int8 is slow there for weights that do not have 8 bits."},
      {"model.chat_template", TWILL_MEMBER(model.chat_template), "", any_path(),
       "A file with a Jinja chat template. When empty, the model's own template is used."},
      {"model.tool_format", TWILL_MEMBER(model.tool_format), "",
       one_of({"auto", "hermes", "mistral", "llama3_json", "chatglm3", "json"}),
       "How the model writes tool calls. auto is what its chat template tells of, and json where the "
       "template shows no tools. hermes is what Qwen models write."},

      {"kv.memory", TWILL_BYTES(kv.memory_bytes), "", bytes_between(0, 64 * tib),
       "The most memory that all KV blocks together may take. 0 takes a share of the free memory. Each "
       "of several models may take this much, within `device.memory`, which holds over all of them."},
      {"kv.block_tokens", TWILL_MEMBER(kv.block_tokens), "tokens", power_of_two_between(8, 256),
       "How many positions of a sequence one KV block holds."},
      {"kv.type", TWILL_MEMBER(kv.type), "", one_of({"auto", "f32", "f16", "bf16", "int8"}),
       "The element type of keys and values. auto is f32 when products are computed in f32; otherwise "
       "it is bf16 on a host that multiplies bf16 and on a GPU that computes in bf16, else f16."},
      {"kv.prefix_cache", TWILL_MEMBER(kv.prefix_cache), "", either(),
       "Whether computed KV blocks are kept for later prompts that begin with the same tokens."},
      {"kv.share_prefixes", TWILL_MEMBER(kv.share_prefixes), "", either(),
       "Whether tenants share cached KV blocks. Unless they do, a prompt finds only what its own "
       "tenant computed, and neither times nor `cached_tokens` tell of other tenants' prompts."},
      {"kv.host_memory", TWILL_BYTES(kv.host_memory_bytes), "", bytes_between(0, 64 * tib),
       "The most host memory for cached KV blocks that have left the device. They come back when a "
       "prompt begins with their tokens. Blocks on their way to and from tiers take up to 256 MiB "
       "more. Of several models each has an equal share."},
      {"kv.disk_memory", TWILL_BYTES(kv.disk_memory_bytes), "", bytes_between(0, 64 * tib),
       "The most room on disk for cached KV blocks that have left the device and host memory. Of "
       "several models each has an equal share."},
      {"kv.disk_dir", TWILL_MEMBER(kv.disk_dir), "", any_path(),
       "The folder of KV blocks on disk. It must be open to twilld's user alone (mode 0700), since "
       "blocks tell of prompts, and is made where it is missing. When empty, it is kv/ in the cache "
       "folder."},
      {"kv.keep", TWILL_MEMBER(kv.keep), "", either(),
       "Whether KV blocks on disk are found again after a restart or a crash. Then every computed "
       "block is written to disk. `twill kv purge` removes them."},
      {"kv.events", TWILL_MEMBER(kv.events.endpoint), "", zmq_endpoint_or_none(),
       "Where routers are told which KV blocks the cache has, as vLLM tells them: the address of a ZeroMQ "
       "publisher, where * stands for all of IPv4's. Empty publishes nothing. **Events carry the prompts as "
       "token ids, and whoever can connect reads them without a key**: use an address that only routers "
       "reach. Where keys have several holders it needs `kv.share_prefixes`."},
      {"kv.events_topic", TWILL_MEMBER(kv.events.topic), "", any_name(),
       "The topic of the messages at `kv.events`: vllm-router's is empty, llm-d's kv@POD@MODEL."},
      {"kv.events_format", TWILL_MEMBER(kv.events.format), "", one_of({"map", "array"}),
       "How an event is written: as a map (vllm-router, and vLLM since June 2026) or as an array of its "
       "values (vLLM before that)."},

      {"scheduler.max_step_tokens", TWILL_MEMBER(scheduler.max_step_tokens), "tokens",
       between(0, 65536),
       "The most tokens of one forward pass, prefill chunks and decodes together. 0 is 512, or what "
       "the plan chooses where weights are streamed."},
      {"scheduler.mixed_prompt_tokens", TWILL_MEMBER(scheduler.mixed_prompt_tokens), "tokens",
       between(0, 65536),
       "The most prompt tokens of a forward pass that decodes as well. Fewer keep streams at their "
       "pace while a long prompt is read, more end the prompt sooner. 0 takes as many as "
       "`scheduler.gap_target` leaves time for; where weights are streamed, the plan chooses."},
      {"scheduler.gap_target", TWILL_MEMBER(scheduler.gap_target), "",
       time_between(1ms, 1min),
       "The time within which 99 % of the forward passes end that decode while prompts are read, and "
       "so the gap between two tokens of a stream. Prompts get what decodes leave of it, by measured "
       "times, but at least 16 tokens, and at least as much time as the decodes alone take."},
      {"scheduler.max_running", TWILL_MEMBER(scheduler.max_running), "sequences", between(1, 65536),
       "The most sequences that run at once."},
      {"scheduler.max_queued", TWILL_MEMBER(scheduler.max_queued), "requests", between(1, 1'000'000),
       "The most requests that wait. Further ones are refused with status 429."},
      {"scheduler.max_context_tokens", TWILL_MEMBER(scheduler.max_context_tokens), "tokens",
       between(0, most_tokens),
       "The most tokens of one sequence, prompt and output together. 0 is the model's own limit."},
      {"scheduler.policy", TWILL_MEMBER(scheduler.policy), "", one_of({"fair", "fcfs"}),
       "Who is served next. fair lets clients take turns by tokens, and each client's requests keep "
       "their order; a client is an API key where there are keys, else an address, and behind "
       "loopback a connection; the weight of a tenant is its share. fcfs serves all requests in the "
       "order of their arrival."},
      {"scheduler.queue_timeout", TWILL_MEMBER(scheduler.queue_timeout), "", time_between(0ms, 168h),
       "The time for which a request may wait before it runs; then it ends with status 503. 0 sets no "
       "limit beside `limits.request_timeout`."},
      {"scheduler.max_paused", TWILL_MEMBER(scheduler.max_paused), "requests", between(1, 1'000'000),
       "The most requests that wait because their readers are slow or give no credit. They do not "
       "count as waiting requests. One more ends the latest of the client that has the most."},
      {"scheduler.max_prompts", TWILL_BYTES(scheduler.max_prompts_bytes), "",
       bytes_between(mib, 64 * tib),
       "The most memory for the prompts of all requests that run or wait, of which paused requests "
       "may take a quarter. Further requests are refused with status 429."},
      {"scheduler.max_text", TWILL_BYTES(scheduler.max_text_bytes), "", bytes_between(mib, 64 * tib),
       "The most memory for prompts that wait to be tokenized, of which one client alone may take "
       "half. Further prompts are refused with status 429."},
      {"scheduler.text_timeout", TWILL_MEMBER(scheduler.text_timeout), "", time_between(100ms, 1h),
       "The time for which a prompt may wait to be tokenized before it is refused with status 429."},
      {"scheduler.watchdog", TWILL_MEMBER(scheduler.watchdog), "", time_between(0ms, 24h),
       "While a forward pass takes longer than this, /ready has status 503 and says why. 0 sets no "
       "limit."},
      {"scheduler.restart_delay", TWILL_MEMBER(scheduler.restart_delay), "", time_between(0ms, 1h),
       "A failed executor is loaded again at once; when it fails again soon, after this time, then "
       "after twice this time, and so on."},
      {"scheduler.restart_delay_max", TWILL_MEMBER(scheduler.restart_delay_max), "",
       time_between(1ms, 24h),
       "The longest time before an executor is loaded again. After 6 failures in a short time every "
       "request ends with an error, and the executor is loaded again each time that this has passed."},

      {"scheduler.trace", TWILL_MEMBER(scheduler.trace), "", any_path(),
       "A file that tells line by line what the scheduler saw and decided, for `twill replay`. It has "
       "names of clients, lengths and times, and hashes where prompts begin alike, but no text; only "
       "twilld's user may read it. A file that is there at the start is kept with .1 behind its name. "
       "When empty, nothing is written."},
      {"scheduler.trace_size", TWILL_BYTES(scheduler.trace_size_bytes), "",
       bytes_between(64 * kib, 64 * tib),
       "The size beyond which that file does not grow. What comes later is left out, and a line of the "
       "log says so."},

      {"device.kind", TWILL_MEMBER(device.kind), "", one_of({"auto", "host", "cuda"}),
       "Where kernels run. auto is cuda where the program was built with CUDA and finds a GPU, else "
       "host."},
      {"device.id", TWILL_MEMBER(device.id), "", between(0, 1023),
       "The number of the GPU, as CUDA counts them, where kernels run on one."},
      {"device.memory", TWILL_BYTES(device.memory_bytes), "", bytes_between(0, 64 * tib),
       "The budget for weights, KV and workspace together. 0 sets no limit beyond the machine's own."},
      {"device.threads", TWILL_MEMBER(device.threads), "threads", between(0, 1024),
       "The number of compute threads on the host. 0 takes one for each core that the process may use."},
      {"device.link_gbps", TWILL_MEMBER(device.link_gbps), "GB/s", between(0, 10'000),
       "A simulated link: copies of streamed weights to the device take as long as they would at this "
       "speed. 0 simulates nothing."},

      {"offload.device_percent", TWILL_MEMBER(offload.device_percent), "percent", between(-1, 100),
       "The share of the weights that lives on the device; the rest is streamed. -1 keeps all of them "
       "there when they fit `device.memory`, else as many as fit."},
      {"offload.host_percent", TWILL_MEMBER(offload.host_percent), "percent", between(-1, 100),
       "The share of the weights that lives in host memory; what is left lives on disk. -1 takes as "
       "much as fits."},
      {"offload.dir", TWILL_MEMBER(offload.dir), "", any_path(),
       "The folder for the disk tier's file. When empty, it is the system's temporary folder."},
      {"offload.reads", TWILL_MEMBER(offload.reads), "", one_of({"direct", "cached"}),
       "Whether the disk tier is read past the page cache (direct) or through it with read-ahead "
       "(cached)."},
      {"offload.ring_layers", TWILL_MEMBER(offload.ring_layers), "layers", between(2, 1024),
       "The device memory for streamed weights that are in use or on their way, counted in whole "
       "layers. Where only part of each layer is streamed, that memory holds parts of more layers."},
      {"offload.sep_layer", TWILL_MEMBER(offload.sep_layer), "", either(),
       "Whether a layer's attention and MLP are streamed apart. `ring_layers` then counts the larger "
       "of the two, which takes less device memory and has less on its way."},
      {"offload.pin_weight", TWILL_MEMBER(offload.pin_weight), "", either(),
       "Whether the host tier's weights are in pinned memory, where the device is a separate chip. "
       "false lets them be swapped out and makes copies slower."},
      {"offload.kv_buffers", TWILL_MEMBER(offload.kv_buffers), "buffers", between(2, 1024),
       "The device buffers for streamed KV that is in use or on its way in `twill offload`. Each "
       "buffer holds the KV of one micro-batch in one layer."},
      {"offload.io_threads", TWILL_MEMBER(offload.io_threads), "threads", between(1, 256),
       "How many transfers between tiers run at once."},
      {"offload.verify_every", TWILL_MEMBER(offload.verify_every), "reads", between(1, 200),
       "A part that is read from disk is compared with its checksum at its first read, then at one "
       "read in this many. 1 compares every read."},
      {"offload.host_memory", TWILL_BYTES(offload.host_memory_bytes), "",
       bytes_between(0, 64 * tib),
       "The most bytes that live in host memory. 0 takes what is available. Of several models each has "
       "an equal share."},
      {"offload.typical_prompt_tokens", TWILL_MEMBER(offload.typical_prompt_tokens), "tokens",
       between(1, most_tokens),
       "The prompt length for which the plan of a model that does not fit shares the device among "
       "weights, KV and steps, where `offload.device_percent` and `kv.memory` leave that open."},
      {"offload.typical_output_tokens", TWILL_MEMBER(offload.typical_output_tokens), "tokens",
       between(1, most_tokens),
       "The output length for which that plan is made."},

      {"server.listen", TWILL_MEMBER(server.listen), "", addresses(),
       "The address, or the list of addresses, that clients connect to. Port 0 picks a free port. A "
       "Unix socket has mode 0660 and belongs to `server.user`; one that nobody listens on any more is "
       "replaced. With several addresses, [::] takes IPv6 alone.", false, true},
      {"server.name", TWILL_MEMBER(server.name), "", id_name_or_none(),
       "The name of this daemon among several behind one router, each with its own. Ids of responses, "
       "completions, files and batches carry it, as in `resp_NAME.` and 24 hex digits, so that a router "
       "can send a request for one to the daemon that made it; any other daemon says by that name whose "
       "it is. Clients see the name. When empty, ids carry none."},
      {"server.admin_listen", TWILL_MEMBER(server.admin_listen), "", address_or_none(),
       "The address that administrators connect to, by a browser for the dashboard; the routes of "
       "`/admin` are served there alone. Who may open a Unix socket (mode 0660, of `server.user`) is "
       "an administrator; at HOST:PORT each request needs a key of a tenant with `admin = true`, as "
       "`twill key new NAME --admin` makes. When empty, there is none."},
      {"server.agent_listen", TWILL_MEMBER(server.agent_listen), "", address_port_or_none(),
       "Where a load balancer asks whether this daemon takes new requests, as HAProxy's `agent-check` "
       "does. Whoever connects is sent one line: `up ready N%`, where N is the share of "
       "`scheduler.max_running` that is free, or `drain` while the model loads, is stalled or restarted, "
       "and once the daemon ends, so that streams under way are left alone. A port alone is one of "
       "127.0.0.1; no key is asked for. When empty, there is none."},
      {"server.user", TWILL_MEMBER(server.user), "", any_name(),
       "The user that a daemon started by root becomes, with that user's groups, once it listens and "
       "before it reads the model. It keeps no way back; a process that stays root reads no more than "
       "the configuration file and the TLS files when they are reloaded. When empty, the user stays."},
      {"server.tls_certificate", TWILL_MEMBER(server.tls_certificate), "", any_path(),
       "A PEM file with the server's certificate and those that lead to its authority. With it and "
       "`server.tls_key`, HTTP and WebSocket are served over TLS 1.2 or newer, and nothing without TLS. "
       "A reload reads both files anew; a pair that cannot be used leaves everything as it was."},
      {"server.tls_key", TWILL_MEMBER(server.tls_key), "", any_path(),
       "A PEM file with the key of `server.tls_certificate`, without a passphrase."},
      {"server.threads", TWILL_MEMBER(server.threads), "threads", between(1, 256),
       "The number of threads that serve sockets."},
      {"server.max_connections", TWILL_MEMBER(server.max_connections), "sockets",
       between(1, 1'000'000),
       "The most open sockets. Further ones are closed when they are accepted."},
      {"server.max_per_address", TWILL_MEMBER(server.max_per_address), "sockets",
       between(-1, 1'000'000),
       "The most open sockets of one client address, or of one /64 network in IPv6. 0 sets no limit; "
       "-1 means 1000, and no limit for clients on this machine."},
      {"server.trusted_proxies", TWILL_MEMBER(server.trusted_proxies), "", networks(),
       "The proxies whose word about their clients is taken, for `max_per_address` and log lines: the "
       "rightmost address of X-Forwarded-For that is not listed here, or what the PROXY protocol says. "
       "`unix` stands for every Unix socket."},
      {"server.proxy_protocol", TWILL_MEMBER(server.proxy_protocol), "", either(),
       "Whether each connection of a trusted proxy begins with a header of the PROXY protocol, version 1 "
       "or 2. A connection of theirs without one is closed."},
      {"server.max_body", TWILL_BYTES(server.max_body_bytes), "", bytes_between(kib, gib),
       "The largest body of an HTTP request."},
      {"server.max_frame", TWILL_BYTES(server.max_frame_bytes), "", bytes_between(kib, gib),
       "The largest WebSocket message."},
      {"server.max_write_queue", TWILL_BYTES(server.max_write_queue_bytes), "",
       bytes_between(4 * kib, gib),
       "The most unsent output of one socket; a client that reads too slowly is paused before that, "
       "then cut off."},
      {"server.max_output", TWILL_BYTES(server.max_output_bytes), "", bytes_between(64 * kib, 64 * tib),
       "The most unsent output of all sockets together. Beyond it new requests are refused, streams "
       "rest sooner, and clients that read nothing are cut off, those with the most output first."},
      {"server.idle_timeout", TWILL_MEMBER(server.idle_timeout), "", time_between(100ms, 24h),
       "A socket that is silent for this long is pinged, and closed when it stays silent."},
      {"server.keep_alive", TWILL_MEMBER(server.keep_alive), "", time_between(0ms, 24h),
       "A reply of server-sent events that is silent for this long, as before its first token, gets a "
       "comment, so that proxies keep its connection. Its status is 200 from then on, and a failure "
       "becomes an event. 0 sends none."},
      {"server.header_timeout", TWILL_MEMBER(server.header_timeout), "", time_between(100ms, 1h),
       "The time in which the head of a request must arrive."},
      {"server.body_rate", TWILL_BYTES(server.body_rate_bytes), "", bytes_between(1, gib),
       "The bytes per second at which the body of a request or a WebSocket message must arrive, once "
       "`header_timeout` has passed."},
      {"server.slow_reader_timeout", TWILL_MEMBER(server.slow_reader_timeout), "",
       time_between(100ms, 24h),
       "A client that has been paused for this long, because it reads too slowly, is cut off with an "
       "error."},
      {"server.drain_timeout", TWILL_MEMBER(server.drain_timeout), "", time_between(0ms, 24h),
       "The time in which streams may finish after SIGTERM."},
      {"server.api_keys", TWILL_MEMBER(server.api_keys), "", list_of_words(),
       "When the list is not empty, clients must send one of the keys, as `Authorization: Bearer KEY` "
       "or `X-Api-Key: KEY`. The keys are secret and are never shown. Each key is a tenant of its own.", true},
      {"server.keys_file", TWILL_MEMBER(server.keys_file), "", any_path(),
       "A file of further keys, such as a systemd credential or a Kubernetes secret. Its lines are "
       "`NAME sha256:HEX`, as `twill key new NAME` prints them, empty, or comments after `#`. A NAME "
       "that `[[tenants]]` lacks is a tenant with default limits."},
      {"server.cors_origins", TWILL_MEMBER(server.cors_origins), "", list_of_words(),
       "The web pages that may use this server beside its own, named by origin such as "
       "`https://chat.example.com`. `*` allows every page."},
      {"server.hosts", TWILL_MEMBER(server.hosts), "", list_of_words(),
       "The names that this server answers to (header `Host`), beside `localhost` and IP addresses. When "
       "empty, it answers to no other name on a loopback address, and to every name elsewhere. `*` "
       "allows every name."},
      {"server.max_streams_per_socket", TWILL_MEMBER(server.max_streams_per_socket), "streams",
       between(1, 1024),
       "The most lanes (`stream_id`) of one WebSocket."},

      {"limits.max_choices", TWILL_MEMBER(limits.max_choices), "sequences", between(1, 1024),
       "The largest `n` of a request."},
      {"limits.max_logprobs", TWILL_MEMBER(limits.max_logprobs), "tokens", between(0, 1000),
       "The most alternatives that are reported for a token."},
      {"limits.max_stop_strings", TWILL_MEMBER(limits.max_stop_strings), "strings", between(0, 1000),
       "The most `stop` entries of a request."},
      {"limits.default_max_tokens", TWILL_MEMBER(limits.default_max_tokens), "tokens",
       between(0, most_tokens),
       "The output tokens of a chat request without `max_tokens`, and of TGI's and llama.cpp's "
       "routes without their limit. 0 lets it run up to the context limit."},
      {"limits.request_timeout", TWILL_MEMBER(limits.request_timeout), "", time_between(0ms, 168h),
       "The time from a request's arrival to its last token. 0 sets no limit."},

      {"sampling.temperature", TWILL_MEMBER(sampling.temperature), "", own_or_between(0, 100),
       "The temperature of requests that give none. 0 always takes the likeliest token. -1 is what the "
       "model's own files say, or 1."},
      {"sampling.top_p", TWILL_MEMBER(sampling.top_p), "", own_or_between(0, 1),
       "The `top_p` of requests that give none. 0 always takes the likeliest token. -1 is what the "
       "model's own files say, or 1, which keeps every token."},
      {"sampling.top_k", TWILL_MEMBER(sampling.top_k), "tokens", between(-1, most_tokens),
       "The `top_k` of requests that give none. 0 keeps every token. -1 is what the model's own files "
       "say, or 0."},
      {"sampling.min_p", TWILL_MEMBER(sampling.min_p), "", own_or_between(0, 1),
       "The `min_p` of requests that give none. -1 is what the model's own files say, or 0, which keeps "
       "every token."},
      {"sampling.repetition_penalty", TWILL_MEMBER(sampling.repetition_penalty), "",
       own_or_between(0.01, 100),
       "The `repetition_penalty` of requests that give none. -1 is what the model's own files say, or 1, "
       "which has no effect."},

      {"structured.compile_timeout", TWILL_MEMBER(structured.compile_timeout), "",
       time_between(10ms, 10min),
       "The processor time that compiling one schema or grammar may take, however busy the machine "
       "is. A request whose grammar takes more is refused with status 400."},
      {"structured.wait_timeout", TWILL_MEMBER(structured.wait_timeout), "", time_between(10ms, 1h),
       "The time for which a request waits for its grammar, behind those of others and while it "
       "compiles. A request that has waited longer is answered with status 503."},
      {"structured.compile_memory", TWILL_BYTES(structured.compile_memory_bytes), "",
       bytes_between(64 * mib, 64 * tib),
       "The most memory that the process that compiles a grammar may take. A request whose grammar "
       "takes more is refused with status 400."},
      {"structured.repeated_items", TWILL_MEMBER(structured.repeated_items), "", either(),
       "Whether a schema is taken whose `uniqueItems` cannot be enforced, as for a set of free strings: "
       "items may then stand twice. When false, the request is refused with status 400. Over at most 64 "
       "fixed values `uniqueItems` is always enforced."},

      {"batches.max_running", TWILL_MEMBER(batches.max_running), "sequences", between(1, 4096),
       "The most sequences of all batches together that run at once, beside interactive requests."},
      {"batches.folder", TWILL_MEMBER(batches.folder), "", any_path(),
       "The folder for uploaded and written files and for batches, which are kept there: batches under way "
       "go on when the daemon starts again, and each line is answered once. When empty, it is a temporary "
       "folder that is removed at exit, and batches end with the process."},
      {"batches.max_folder", TWILL_BYTES(batches.max_folder_bytes), "", bytes_between(0, 64 * tib),
       "The most bytes of all files together. Further uploads are refused, and batches that would "
       "write more fail."},
      {"batches.tenant_share", TWILL_MEMBER(batches.tenant_share), "", share(),
       "The share of `max_folder`, of the 10,000 files and of the 100 batches under way that one tenant "
       "may hold, from 0 to 1, where there is more than one tenant."},

      {"responses.folder", TWILL_MEMBER(responses.folder), "", any_path(),
       "The folder that keeps stored responses, so that they outlive the daemon and those under way go "
       "on when it starts again. When empty, they are kept in memory and end with the process."},
      {"responses.max_folder", TWILL_BYTES(responses.max_folder_bytes), "",
       bytes_between(mib, 64 * tib),
       "The most bytes of stored responses in `folder`, in equal parts for each tenant, of at least 1 "
       "MiB or a sixteenth. For room a tenant's own oldest finished responses go. Where those under way fill its part "
       "new ones get status 507; what these write takes more, and the journal beside them up to twice "
       "their bytes."},
      {"responses.max_memory", TWILL_BYTES(responses.max_memory_bytes), "",
       bytes_between(64 * kib, 64 * tib), "As `max_folder`, where there is no folder. With one, the most bytes of finished responses that "
       "paused readers (slow clients, or /v1/stream without credit) keep in memory, in equal parts for "
       "each tenant; beyond it they are cut off, and may read on later."},
      {"responses.keep", TWILL_MEMBER(responses.keep), "", time_between(1s, 87600h),
       "How long a stored response is kept after it was created."},
      {"responses.grace", TWILL_MEMBER(responses.grace), "", time_between(0ms, 1h),
       "How long a stored response goes on when its client has left, for it to come back; then it is "
       "cancelled. Background responses go on in any case."},
      {"responses.sync", TWILL_MEMBER(responses.sync), "", one_of({"never", "finished", "step"}),
       "When what is written to `folder` is forced to the disk, so that a power failure does not take "
       "it: never, when a response has finished, or also at each step."},

      {"log.level", TWILL_MEMBER(log.level), "",
       one_of({"trace", "debug", "info", "warn", "error", "off"}),
       "The least level of lines that are written to standard error. At info each "
       "request has one line when it ends; no line holds text of prompts or outputs."},
      {"log.format", TWILL_MEMBER(log.format), "", one_of({"text", "json"}),
       "How lines are written. json is one object a line, with `time`, `level`, `message` and, for a "
       "request, its tenant, model, tokens, times and status as members of their own."},

      {"debug.check_ledger", TWILL_MEMBER(debug.check_ledger), "", either(),
       "Checks once a second, while no request runs, whether all that requests took (KV blocks, "
       "places in queues, counted bytes, tokens of tenants) was given back, and logs what was not as an error. "
       "`GET /admin/ledger` tells the same at any time."},

      {"metrics.compat", TWILL_MEMBER(metrics.compat), "", one_of({"none", "vllm", "0.1"}),
       "Whose names /metrics has beside twill's own. vllm adds those of vLLM, so that dashboards and "
       "alerts that were made for it go on working. 0.1 adds those of twill 0.1, which began with "
       "`twill:`, for one release."},

      {"tracing.endpoint", TWILL_MEMBER(tracing.endpoint), "", url_or_none(),
       "The OpenTelemetry collector that gets a trace of each request by OTLP over HTTP, such as "
       "http://127.0.0.1:4318; spans go to /v1/traces below it. When empty, nothing is traced."},
      {"tracing.sample", TWILL_MEMBER(tracing.sample), "", share(),
       "The share of requests that are traced, from 0 to 1. Where a request has a `traceparent`, its "
       "flag decides instead."},
      {"tracing.service", TWILL_MEMBER(tracing.service), "", any_name(),
       "The `service.name` of spans."},
      {"tracing.headers", TWILL_MEMBER(tracing.headers), "", header_lines(),
       "Header lines for the collector, such as \"Authorization: Bearer KEY\".", true},
      // clang-format on
  };
  return table;
}

#undef TWILL_MEMBER
#undef TWILL_BYTES

} // namespace

std::span<const key> all_keys() {
  return rows();
}

const key* find_key(std::string_view name) {
  const auto keys = all_keys();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const key& k) { return k.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string_view current_name(std::string_view old_name) {
  return old_name == "offload.ring_squares" ? "offload.kv_buffers" : "";
}

std::string_view table_of(std::string_view key_name) {
  return key_name.substr(0, key_name.find('.'));
}
std::string_view member_of(std::string_view key_name) {
  return key_name.substr(key_name.find('.') + 1);
}

key_kind kind_at(const member_address& at) {
  // The order of member_address's alternatives is the order of key_kind's values.
  return static_cast<key_kind>(at.index());
}

key_value value_at(const member_address& at) {
  struct reader {
    key_value operator()(const std::string* s) const { return *s; }
    key_value operator()(const std::int32_t* n) const { return std::int64_t{*n}; }
    key_value operator()(bytes_member b) const { return *b.bytes; }
    key_value operator()(const milliseconds* t) const { return std::int64_t{t->count()}; }
    key_value operator()(const std::vector<std::string>* l) const { return *l; }
    key_value operator()(const bool* b) const { return *b; }
    key_value operator()(const double* d) const { return *d; }
  };
  return std::visit(reader{}, at);
}

void store_at(const member_address& at, const key_value& v) {
  struct writer {
    const key_value& v;
    void operator()(std::string* s) const { *s = std::get<std::string>(v); }
    void operator()(std::int32_t* n) const {
      *n = static_cast<std::int32_t>(std::get<std::int64_t>(v));
    }
    void operator()(bytes_member b) const { *b.bytes = std::get<std::int64_t>(v); }
    void operator()(milliseconds* t) const { *t = milliseconds(std::get<std::int64_t>(v)); }
    void operator()(std::vector<std::string>* l) const {
      *l = std::get<std::vector<std::string>>(v);
    }
    void operator()(bool* b) const { *b = std::get<bool>(v); }
    void operator()(double* d) const { *d = std::get<double>(v); }
  };
  std::visit(writer{v}, at);
}

std::string print_value(key_kind kind, bool single, const key_value& v) {
  if (const auto* text = std::get_if<std::string>(&v)) return quote(*text);
  if (const auto* flag = std::get_if<bool>(&v)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&v)) return exact_number(*number);
  if (const auto* list = std::get_if<std::vector<std::string>>(&v)) {
    if (single && list->size() == 1) return quote(list->front());
    std::string out = "[";
    for (std::size_t i = 0; i < list->size(); ++i)
      out += (i > 0 ? ", " : "") + quote((*list)[i]);
    return out + "]";
  }
  const std::int64_t number = std::get<std::int64_t>(v);
  if (kind == key_kind::time && number != 0) return quote(exact_time(number));
  if (kind == key_kind::bytes && exact_bytes(number) != std::to_string(number))
    return quote(exact_bytes(number));
  return std::to_string(number);
}

} // namespace twill::config::detail
