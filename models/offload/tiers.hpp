// tiers: assigns tensors, layers or micro-batches to the tiers: device memory, host memory and
// disk. The functions are pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/offload/options.hpp"

namespace twill::models::offload {

/// Bytes that are kept in each tier.
struct placed_bytes {
  std::int64_t device = 0, host = 0, disk = 0;
};

/// FlexGen's rule (Sheng et al., arXiv:2303.06865): the tensors are laid end to end, the tiers take
/// their shares of the total length in the order disk, host, device, and each tensor goes to the
/// tier into whose share its middle falls. The result is deterministic. `before` has the bytes of
/// the tensors that are placed already. Unlike in FlexGen, which splits every layer alike, the
/// shares count all tensors so far, those in `before` too: if the few large tensors of one layer
/// give a tier too much, the next layer gives that tier less.
std::vector<tier> assign_tiers(std::span<const std::int64_t> tensor_bytes, const shares& wanted,
                               const placed_bytes& before = {});

/// Returns the tier of each of `n` items (layers or micro-batches) of equal size that are used one
/// after another. The items of each tier are spread evenly over the sequence, so that no tier has a
/// long run of work while another tier is idle.
std::vector<tier> spread_tiers(std::int64_t n, const shares& wanted);

} // namespace twill::models::offload
