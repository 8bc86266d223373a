// model_on_device: the parameters with which a model is loaded, for the functions that choose the
// sizes of its buffers and decide where its weights are.
#pragma once

#include <cstdint>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"
#include "models/model.hpp"
#include "models/offload/machine/measured_machine.hpp"

namespace twill::actors {

/// Bytes of device memory that may be used now: the device's budget and, on a host, at most the
/// free memory.
std::int64_t usable_bytes(const gpu::device& device);

struct model_on_device {
  const config::options& options;
  gpu::device& device;
  const models::model& model;
  models::compute_choice compute;
  std::int64_t available_bytes = 0;     ///< usable_bytes() when the load began
  std::int64_t promised_host_bytes = 0; ///< host memory that is reserved for KV tiers
  /// Whether the machine may be measured for a plan, which takes seconds.
  models::offload::measuring measure = models::offload::measuring::if_unknown;

  /// Device memory that steps of these sizes take, beside weights and KV.
  std::int64_t workspace_bytes(const models::decoder_options& sizes) const;
};

} // namespace twill::actors
