// model_on_device: what a load is about, for the functions that size and place it.
#pragma once

#include <cstdint>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"
#include "models/model.hpp"
#include "models/offload/machine/measured_machine.hpp"

namespace twill::actors {

/// Device memory that may be used now: the device's budget and, on a host, no more than is free.
std::int64_t usable_bytes(const gpu::device& device);

struct model_on_device {
  const config::options& options;
  gpu::device& device;
  const models::model& model;
  models::compute_choice compute;
  std::int64_t available_bytes = 0;     ///< usable_bytes() when the load began
  std::int64_t promised_host_bytes = 0; ///< of host memory, to KV tiers
  /// Whether the machine may be measured for a plan, which takes seconds.
  models::offload::measuring measure = models::offload::measuring::if_unknown;

  /// Device memory that steps of these sizes take, beside weights and KV.
  std::int64_t workspace_bytes(const models::decoder_options& sizes) const;
};

} // namespace twill::actors
