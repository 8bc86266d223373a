// The flags of `twill offload`: FlexGen's names and meanings (flexllmgen/flex_opt.py) where there
// is one, checked before anything is opened. What cannot be meant here is refused with its reason.
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
  std::int32_t cut_gen_len = 0; ///< 0: none
  std::int32_t gpu_batch_size = 4;
  std::int32_t num_gpu_batches = 1;
  std::vector<std::int32_t> percent = {100, 0, 100, 0, 100, 0};
  std::string search_order = "zigzag";
  std::int32_t stagger = 0; ///< 0: by where the weights are
  std::string offload_dir;
  std::string sep_layer = "false", pin_weight = "true", overlap = "true";
  bool cpu_cache_compute = false, compress_weight = false, compress_cache = false;
  std::string prompts, output, log_file, timeline, rounds;
  bool ignore_eos = false, no_log = false;
  bool plan = false, plan_only = false, remeasure = false;
  /// Given by the user: the planner leaves them alone.
  bool fixed_percent = false, fixed_order = false, fixed_batch = false, fixed_batches = false;
  std::int32_t verbose = 2;
  std::string debug_mode; ///< "breakdown" or nothing
  double attn_sparsity = 1;
  std::vector<std::string> settings;
};

void add_flags(CLI::App& command, offload_flags& flags);

/// Throws client_error: "flag, rule, given value".
void check_flags(const offload_flags& flags);

/// The configuration that the flags amount to.
config::options options_of(const offload_flags& flags);

models::offload::job_mode mode_of(const offload_flags& flags);

} // namespace twill::tools
