// serving_fit: how a daemon would serve a model on this machine: what it would reserve, whether all
// weights fit or some are streamed, from where, and at about which speed.
//
// Sizes and places are the daemon's own: size_decoder() of actors/executor decides them. On the
// device's thread; it loads no weights, but may measure the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/compute.hpp"
#include "models/model.hpp"
#include "models/offload/plan_for_serving.hpp"
#include "tools/twill/memory_text.hpp"

namespace twill::tools {

struct serving_fit {
  std::string refused;  ///< why a daemon would refuse it; empty: it would not, and the rest is set
  device_memory memory; ///< `touched` is what it takes before the first request
  std::int64_t kv_tokens = 0;      ///< of all requests together
  std::int64_t context_tokens = 0; ///< of one request, by the model and the options
  bool streamed = false;
  std::int64_t device_bytes = 0, host_bytes = 0, disk_bytes = 0; ///< of weights, where they live
  std::string disk_folder;                                       ///< for those on disk
  std::optional<models::offload::planned_serving> plan;          ///< of a streamed model
};

/// `model` has the weights that `types` compute with, see models::weights_for(). Without a plan for
/// a streamed model there is no more than measuring::never allows.
serving_fit fit_for_serving(gpu::device& dev, const models::model& model,
                            const models::compute_choice& types, const config::options& options,
                            models::offload::measuring when);

/// Rows of a name and a text: what would be reserved and touched, whether it fits or is streamed
/// from where, and of a streamed model the speed, which is measured where no plan has it.
std::vector<std::pair<std::string, std::string>> fit_rows(const serving_fit& fit, gpu::device& dev,
                                                          const config::options& options);

} // namespace twill::tools
