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
  command
      .add_option(
          "--model,--path", f.model,
          "The model: a folder, a GGUF file, hf:ORG/NAME of the hub's cache, or dummy:PRESET.")
      ->required();
  command.add_option("--prompt-len", f.prompt_len, "The number of tokens of each made-up prompt.")
      ->capture_default_str();
  command.add_option("--gen-len", f.gen_len, "The number of tokens to generate for each prompt.")
      ->capture_default_str();
  command.add_option("--cut-gen-len", f.cut_gen_len,
                     "Stops after this many tokens and projects the times of the rest.");
  command
      .add_option("--gpu-batch-size", f.gpu_batch_size, "The number of sequences of a micro-batch.")
      ->capture_default_str();
  command
      .add_option("--num-gpu-batches", f.num_gpu_batches, "The number of micro-batches of a block.")
      ->capture_default_str();
  command
      .add_option("--percent", f.percent,
                  "Six percentages: of the weights on the device and on the host, of KV on both, "
                  "of activations on both. The rest is on disk.")
      ->expected(6)
      ->capture_default_str();
  command
      .add_option(
          "--search-order", f.search_order,
          "The order of a block schedule, zigzag or diagonal; fused runs one continuous batch.")
      ->check(CLI::IsMember({"zigzag", "diagonal", "fused"}))
      ->capture_default_str();
  command.add_option("--stagger", f.stagger,
                     "The rounds of a diagonal schedule between the entries of two micro-batches; "
                     "0 spreads them evenly, or takes 1 where weights travel.");
  command.add_option("--offload-dir", f.offload_dir,
                     "The folder of the file that is the disk tier.");
  command
      .add_option("--sep-layer", f.sep_layer,
                  "Whether the attention and the MLP of a layer travel apart.")
      ->check(CLI::IsMember({"true", "false"}))
      ->capture_default_str();
  command
      .add_option(
          "--pin-weight", f.pin_weight,
          "Whether weights on the host are in pinned memory, where the device is another chip.")
      ->check(CLI::IsMember({"true", "false"}))
      ->capture_default_str();
  command.add_option("--overlap", f.overlap, "Whether transfers run beside the compute.")
      ->check(CLI::IsMember({"true", "false"}));
  command.add_flag("--cpu-cache-compute", f.cpu_cache_compute,
                   "Computes attention over KV of the host tier on the host, where that KV is.");
  command.add_flag("--compress-weight", f.compress_weight,
                   "Rounds weights to 4 bits in groups of 64.");
  command.add_flag("--compress-cache", f.compress_cache,
                   "Rounds KV that is not on the device to 4 bits in groups of 64.");
  command.add_option("--prompts", f.prompts,
                     "The file of prompts: JSON lines with `prompt` (text or token ids) and "
                     "optionally `max_tokens`.");
  command.add_option(
      "--output", f.output,
      "The file that outputs are written to: JSON lines with text, token_ids and finish_reason.");
  command.add_flag("--ignore-eos", f.ignore_eos, "Lets no end-of-text token end a sequence.");
  command.add_option("--log-file", f.log_file, "Also appends the report to this file.");
  command.add_flag("--no-log", f.no_log, "Writes no log file.");
  command
      .add_option("--verbose", f.verbose,
                  "How much is printed: 0 prints totals, 1 adds the tiers, 2 adds the outputs.")
      ->capture_default_str();
  command
      .add_option("--debug-mode", f.debug_mode,
                  "With `breakdown`, also prints what the seconds of the run were spent on.")
      ->check(CLI::IsMember({"breakdown"}));
  command.add_option("--attn-sparsity", f.attn_sparsity,
                     "The share of the values that attention reads, which must be 1.");
  command.add_option("--timeline", f.timeline,
                     "Writes an SVG picture of what ran when to this file; with --plan-only, of "
                     "the simulated plan.");
  command.add_option("--rounds", f.rounds,
                     "Writes a CSV file with a line per round: how long it took in all, decoding "
                     "and with transfers under way, and when it ended on the monotonic clock.");
  command.add_flag(
      "--plan", f.plan,
      "Measures this machine and chooses what is not given: percentages, batches and order.");
  command.add_flag("--plan-only", f.plan_only,
                   "Prints the plan that --plan would choose and ends.");
  command.add_flag("--remeasure", f.remeasure,
                   "Measures the machine even if an earlier run did; rates are kept for a week.");
  command.add_option("--set", f.settings,
                     "Sets one key of the configuration, KEY=VALUE; may be repeated.");
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
