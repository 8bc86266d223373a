// choose_placement: chooses which share of the weights is kept in which tier (device, host memory,
// disk) from the options and from the memory available. The functions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "config/options.hpp"
#include "gpu/device.hpp"
#include "models/errc.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/options.hpp"

namespace twill::models::offload {

struct placement_room {
  packed_weights weights;
  std::int32_t n_layers = 1;
  bool sep_layer = false;        ///< attention and MLP of a layer are transferred separately
  std::int64_t device_bytes = 0; ///< device memory that weights may take
  std::int64_t host_bytes = 0;   ///< host memory that weights may take
};

/// Chooses the percentage of the weights that each tier (device, host memory, disk) gets, if the
/// options leave it open. All weights go on the device if they fit. Otherwise the device gets as
/// many as fit beside the ring of buffers for streamed weights, host memory as many of the others
/// as fit there, and the disk the rest. If not even the ring fits, fails with a message that states
/// the needed and the available bytes.
result<offload_options> choose_placement(const config::options& options,
                                         const placement_room& room);

/// Describes the choice for the log, for example "weights 250 MiB: 20 % device, 80 % disk (/tmp,
/// direct reads), ring of 3 layers (42.5 MiB)".
std::string describe(const offload_options& chosen, const placement_room& room);

/// Device memory of the ring and of the weights that always live on the device.
std::int64_t least_device_bytes(const placement_room& room, std::int32_t ring_layers);

} // namespace twill::models::offload
