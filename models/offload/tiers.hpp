// tiers: which tensor lives where. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/offload/options.hpp"

namespace twill::models::offload {

/// Bytes that live in each tier.
struct placed_bytes {
  std::int64_t device = 0, host = 0, disk = 0;
};

/// FlexGen's rule (Sheng et al., arXiv:2303.06865): the tensors are laid end to end, the tiers take
/// their shares in the order disk, host, device, and a tensor goes to the tier that its middle
/// falls into. Deterministic. The shares count all tensors, those `before` included: where the few
/// large tensors of one layer give a tier too much, the next layer gives it less. FlexGen splits
/// every layer alike.
std::vector<tier> assign_tiers(std::span<const std::int64_t> tensor_bytes, const shares& wanted,
                               const placed_bytes& before = {});

/// The tiers of n things of one size that are used in turn. Each tier's things lie evenly among the
/// others, so that no tier has a long run of work while another one is idle.
std::vector<tier> spread_tiers(std::int64_t n, const shares& wanted);

} // namespace twill::models::offload
