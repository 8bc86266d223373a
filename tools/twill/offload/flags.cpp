#include "tools/twill/offload/flags.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <numeric>

#include "config/load.hpp"
#include "gpu/copy_stream.hpp"
#include "tools/common/http_client.hpp"

namespace twill::tools {
namespace {

void need(bool holds, const std::string& rule) {
  if (!holds) throw client_error(rule);
}

} // namespace

void add_flags(CLI::App& command, offload_flags& f) {
  command.add_option("--model,--path", f.model, "folder, GGUF file or dummy:PRESET")->required();
  command.add_option("--prompt-len", f.prompt_len, "tokens of each made-up prompt")
      ->capture_default_str();
  command.add_option("--gen-len", f.gen_len, "tokens to generate")->capture_default_str();
  command.add_option("--cut-gen-len", f.cut_gen_len,
                     "stop after as many tokens and project the rest");
  command.add_option("--gpu-batch-size", f.gpu_batch_size, "sequences of a micro-batch")
      ->capture_default_str();
  command.add_option("--num-gpu-batches", f.num_gpu_batches, "micro-batches of a block")
      ->capture_default_str();
  command
      .add_option("--percent", f.percent,
                  "weights on device, host; KV on device, host; activations on device, host")
      ->expected(6)
      ->capture_default_str();
  command.add_option("--search-order", f.search_order, "zigzag, diagonal or fused")
      ->check(CLI::IsMember({"zigzag", "diagonal", "fused"}))
      ->capture_default_str();
  command.add_option("--stagger", f.stagger,
                     "diagonal: rounds between two micro-batches' entries; 0: spread evenly, or 1 "
                     "where weights travel");
  command.add_option("--offload-dir", f.offload_dir, "folder of the disk tier's file");
  command.add_option("--sep-layer", f.sep_layer, "attention and MLP as layers of their own")
      ->check(CLI::IsMember({"true", "false"}))
      ->capture_default_str();
  command
      .add_option("--pin-weight", f.pin_weight,
                  "host weights in pinned memory, where the device is another chip")
      ->check(CLI::IsMember({"true", "false"}))
      ->capture_default_str();
  command.add_option("--overlap", f.overlap, "transfers beside the compute")
      ->check(CLI::IsMember({"true", "false"}));
  command.add_flag("--cpu-cache-compute", f.cpu_cache_compute,
                   "attention over KV of the host tier where it is, on the host");
  command.add_flag("--compress-weight", f.compress_weight, "weights in 4 bits, groups of 64");
  command.add_flag("--compress-cache", f.compress_cache,
                   "KV that is not on the device in 4 bits, groups of 64");
  command.add_option("--prompts", f.prompts,
                     "JSON lines with `prompt` (text or token ids) and optional `max_tokens`");
  command.add_option("--output", f.output, "JSON lines with text, token_ids, finish_reason");
  command.add_flag("--ignore-eos", f.ignore_eos, "end ids do not end a sequence");
  command.add_option("--log-file", f.log_file, "the report is appended there as well");
  command.add_flag("--no-log", f.no_log, "no log file");
  command.add_option("--verbose", f.verbose, "0: totals, 1: and tiers, 2: and outputs")
      ->capture_default_str();
  command
      .add_option("--debug-mode", f.debug_mode, "breakdown: what the run's seconds were spent on")
      ->check(CLI::IsMember({"breakdown"}));
  command.add_option("--attn-sparsity", f.attn_sparsity,
                     "share of the values that attention reads: all, 1");
  command.add_option("--timeline", f.timeline,
                     "SVG picture of what ran when; with --plan-only, of the plan, simulated");
  command.add_option("--rounds", f.rounds,
                     "CSV of how long each round took: all, decoding, with transfers under "
                     "way; and when "
                     "it ended on the monotonic clock");
  command.add_flag(
      "--plan", f.plan,
      "measure this machine and choose what is not given: percentages, batches, order");
  command.add_flag("--plan-only", f.plan_only, "print such a plan and end");
  command.add_flag("--remeasure", f.remeasure,
                   "measure even if an earlier run did; rates are kept for a week");
  command.add_option("--set", f.settings, "set one key of the configuration");
}

void check_flags(const offload_flags& f) {
  const auto positive = [](const char* flag, std::int32_t given) {
    need(given >= 1,
         std::string("`") + flag + "` must be at least 1, got " + std::to_string(given));
  };
  positive("--prompt-len", f.prompt_len);
  positive("--gen-len", f.gen_len);
  positive("--gpu-batch-size", f.gpu_batch_size);
  positive("--num-gpu-batches", f.num_gpu_batches);
  need(f.cut_gen_len >= 0 && f.cut_gen_len <= f.gen_len,
       "`--cut-gen-len` must be at most --gen-len, got " + std::to_string(f.cut_gen_len));
  need(f.cut_gen_len == 0 || f.cut_gen_len > 3,
       "`--cut-gen-len` must be at least 4, for there to be steps to project from, got " +
           std::to_string(f.cut_gen_len));
  need(f.cut_gen_len == 0 || (f.prompts.empty() && f.search_order != "diagonal"),
       "`--cut-gen-len` needs prompts of one length and a zigzag or fused order");
  for (std::size_t i = 0; i < 6; i += 2)
    need(f.percent[i] >= 0 && f.percent[i + 1] >= 0 && f.percent[i] + f.percent[i + 1] <= 100,
         "`--percent` must be pairs of shares from 0 to 100, each pair at most 100 together, got " +
             std::to_string(f.percent[i]) + " " + std::to_string(f.percent[i + 1]));
  need(f.percent[2] == 100 || f.search_order != "fused",
       "`--percent` must have all KV on the device in a fused run, got " +
           std::to_string(f.percent[2]));
  need(f.percent[4] == 100 || f.search_order != "fused",
       "`--percent` must have all activations on the device in a fused run, got " +
           std::to_string(f.percent[4]));
  need(f.attn_sparsity == 1, "`--attn-sparsity` must be 1, got " + std::to_string(f.attn_sparsity) +
                                 ": every value is attended to, or tokens would be others");
  need(!f.cpu_cache_compute || gpu::device_memory_is_host(),
       "`--cpu-cache-compute` must be off on this device: attention on the host is built for "
       "devices that share its memory");
  need(!f.cpu_cache_compute || !f.compress_cache,
       "`--cpu-cache-compute` must be off with --compress-cache: the device unpacks KV");
  const bool planned = (f.plan || f.plan_only) && !f.fixed_percent;
  need(!f.compress_cache || planned || f.percent[2] < 100,
       "`--compress-cache` needs KV that is not on the device, got --percent with " +
           std::to_string(f.percent[2]) + " % there: `--set kv.type=int8` makes resident KV small");
}

config::options options_of(const offload_flags& f) {
  std::vector<config::setting> settings;
  const auto set = [&](const std::string& key, const std::string& value) {
    settings.push_back({"--percent", key, value, false});
  };
  set("offload.device_percent", std::to_string(f.percent[0]));
  set("offload.host_percent", std::to_string(f.percent[1]));
  settings.push_back({"--sep-layer", "offload.sep_layer", f.sep_layer, false});
  settings.push_back({"--pin-weight", "offload.pin_weight", f.pin_weight, false});
  if (!f.offload_dir.empty())
    settings.push_back({"--offload-dir", "offload.dir", f.offload_dir, true});
  for (const std::string& text : f.settings) {
    auto parsed = config::parse_setting(text);
    if (!parsed.ok()) throw client_error(parsed.detail());
    settings.push_back(parsed.value());
  }
  auto loaded = config::load("", settings);
  if (!loaded.ok()) throw client_error(loaded.detail());
  need(!f.compress_weight || loaded.value().model.compute != "w8a8",
       "`model.compute` must not be w8a8 with --compress-weight, got \"w8a8\": that makes "
       "8 bits of a weight, not 4");
  return loaded.value();
}

models::offload::job_mode mode_of(const offload_flags& f) {
  if (f.search_order == "zigzag") return models::offload::job_mode::zigzag;
  return f.search_order == "diagonal" ? models::offload::job_mode::diagonal
                                      : models::offload::job_mode::fused;
}

} // namespace twill::tools
