// choose_placement: where weights live, from the options and from what fits. Pure.
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
  bool sep_layer = false;        ///< attention and MLP of a layer travel apart
  std::int64_t device_bytes = 0; ///< device memory that weights may take
  std::int64_t host_bytes = 0;   ///< host memory that weights may take
};

/// Returns the options with every open percentage chosen: all weights on the device if they fit,
/// else as many as fit beside the ring, then as many as fit in host memory, the rest on disk. Fails
/// with the numbers if not even the ring fits.
result<offload_options> choose_placement(const config::options& options,
                                         const placement_room& room);

/// For example "weights 250 MiB: 20 % device, 80 % disk (/tmp, direct reads), ring of 3 layers
/// (42.5 MiB)".
std::string describe(const offload_options& chosen, const placement_room& room);

/// Device memory of the ring and of the weights that always live on the device.
std::int64_t least_device_bytes(const placement_room& room, std::int32_t ring_layers);

} // namespace twill::models::offload
