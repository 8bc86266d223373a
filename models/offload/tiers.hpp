// tiers: which tensor lives where. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/offload/options.hpp"

namespace twill::models::offload {

/// FlexGen's rule (Sheng et al., arXiv:2303.06865): laid end to end, a tensor goes to the tier in
/// whose share its middle lies; the shares in the order disk, host, device. Deterministic.
std::vector<tier> assign_tiers(std::span<const std::int64_t> tensor_bytes, const shares& wanted);

} // namespace twill::models::offload
