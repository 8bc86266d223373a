// flags: the options of `twill offload`. Names and meanings are those of FlexGen
// (flexllmgen/flex_opt.py) where FlexGen has such an option. All options are checked before
// anything is opened; an option of FlexGen that has no meaning here is refused with the reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.hpp"
#include "models/offload/job/offload_job.hpp"

namespace CLI {
class App;
}

namespace twill::tools {

struct offload_flags {
  std::string model;
  std::int32_t prompt_len = 512;
  std::int32_t gen_len = 32;
  std::int32_t cut_gen_len = 0; ///< 0: not cut
  std::int32_t gpu_batch_size = 4;
  std::int32_t num_gpu_batches = 1;
  std::vector<std::int32_t> percent = {100, 0, 100, 0, 100, 0};
  std::string search_order = "zigzag";
  std::int32_t stagger = 0; ///< 0: chosen from where the weights are placed
  std::string offload_dir;
  std::string sep_layer = "false", pin_weight = "true", overlap = "true";
  bool cpu_cache_compute = false, compress_weight = false, compress_cache = false;
  std::string prompts, output, log_file, timeline, rounds;
  bool ignore_eos = false, no_log = false;
  bool plan = false, plan_only = false, remeasure = false;
  /// True if the user gave the flag: the planner then leaves the value alone.
  bool fixed_percent = false, fixed_order = false, fixed_batch = false, fixed_batches = false;
  std::int32_t verbose = 2;
  std::string debug_mode; ///< "breakdown" or empty
  double attn_sparsity = 1;
  std::vector<std::string> settings;
};

void add_flags(CLI::App& command, offload_flags& flags);

/// Throws client_error with the flag, the rule and the given value when a value is invalid.
void check_flags(const offload_flags& flags);

/// Returns the configuration that the flags imply.
config::options options_of(const offload_flags& flags);

models::offload::job_mode mode_of(const offload_flags& flags);

} // namespace twill::tools
