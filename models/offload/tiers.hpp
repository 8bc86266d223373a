// tiers: which tensor lives where. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/offload/options.hpp"

namespace twill::models::offload {

/// Bytes at home in each tier.
struct placed_bytes {
  std::int64_t device = 0, host = 0, disk = 0;
};

/// FlexGen's rule (Sheng et al., arXiv:2303.06865): laid end to end, a tensor goes to the tier in
/// whose share its middle lies; the shares in the order disk, host, device. Deterministic. The
/// shares are those of all tensors, `before` included: what a layer's few large tensors get too
/// much of, the next one makes up for, where FlexGen would split every layer alike.
std::vector<tier> assign_tiers(std::span<const std::int64_t> tensor_bytes, const shares& wanted,
                               const placed_bytes& before = {});

/// The same for n things of one size that are used in turn, each making up for those before: what a
/// tier has lies evenly among the others, so that none waits in long runs while another is idle.
std::vector<tier> spread_tiers(std::int64_t n, const shares& wanted);

} // namespace twill::models::offload
