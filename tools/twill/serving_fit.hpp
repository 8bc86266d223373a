// serving_fit: predicts how a daemon would serve a model on this machine: the memory it would
// reserve, whether all weights fit into device memory or some are streamed and from where, and the
// approximate speed.
//
// The sizes and the placement of weights come from size_decoder() in actors/executor, which the
// daemon itself uses. Call on the device's thread. No weights are loaded, but the machine's speeds
// may be measured.
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
  std::string refused;  ///< why a daemon would refuse the model; empty: it would serve it, and the
                        ///< members below are set
  device_memory memory; ///< `touched` is the memory in use before the first request
  std::int64_t kv_tokens = 0;      ///< KV tokens for all requests together
  std::int64_t context_tokens = 0; ///< context length of one request, limited by the model and the
                                   ///< options
  bool streamed = false;
  std::int64_t device_bytes = 0, host_bytes = 0, disk_bytes = 0; ///< bytes of weights in each tier
  /// the folder of the weights on disk
  std::string disk_folder;
  /// set for a streamed model, if there is a plan
  std::optional<models::offload::planned_serving> plan;
};

/// `model` must have the weights that models::weights_for() returns for `types`. With the compute
/// type w8a8, these are the model's weights rounded to 8 bits. With `when` == measuring::never the
/// speeds of the machine are not measured. A streamed model then has a `plan` only if an earlier
/// run has stored the speeds.
serving_fit fit_for_serving(gpu::device& dev, const models::model& model,
                            const models::compute_choice& types, const config::options& options,
                            models::offload::measuring when);

/// Returns rows of a name and a text: the memory that would be reserved and touched, and whether
/// the model fits or from where it is streamed. For a model whose weights are
/// streamed there is also a row with the tokens per second that its plan expects or, if `fit` has
/// no plan, with an upper bound that is measured now.
std::vector<std::pair<std::string, std::string>> fit_rows(const serving_fit& fit, gpu::device& dev,
                                                          const config::options& options);

} // namespace twill::tools
