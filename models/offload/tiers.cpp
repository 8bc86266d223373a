#include "models/offload/tiers.hpp"

#include <numeric>

namespace twill::models::offload {

const char* name_of(tier t) {
  switch (t) {
  case tier::device:
    return "device";
  case tier::host:
    return "host";
  case tier::disk:
    break;
  }
  return "disk";
}

std::vector<tier> assign_tiers(std::span<const std::int64_t> tensor_bytes, const shares& wanted) {
  const std::int64_t total =
      std::accumulate(tensor_bytes.begin(), tensor_bytes.end(), std::int64_t{0});
  const std::int64_t disk_share = 100 - wanted.device - wanted.host;
  std::vector<tier> homes;
  std::int64_t before = 0;
  for (const std::int64_t bytes : tensor_bytes) {
    // The middle in percent of the whole, all times 2 to stay in integers.
    const std::int64_t middle = 100 * (2 * before + bytes);
    if (middle < 2 * disk_share * total)
      homes.push_back(tier::disk);
    else if (middle < 2 * (disk_share + wanted.host) * total)
      homes.push_back(tier::host);
    else
      homes.push_back(tier::device);
    before += bytes;
  }
  return homes;
}

} // namespace twill::models::offload
