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

std::vector<tier> assign_tiers(std::span<const std::int64_t> tensor_bytes, const shares& wanted,
                               const placed_bytes& before) {
  const std::int64_t total =
      std::accumulate(tensor_bytes.begin(), tensor_bytes.end(),
                      before.device + before.host + before.disk); // the end with these tensors
  const std::int64_t disk_share = 100 - wanted.device - wanted.host;
  // Where the shares of the disk and of the host end, in hundredths of a byte.
  const std::int64_t disk_end = disk_share * total - 100 * before.disk;
  const std::int64_t host_end =
      (disk_share + wanted.host) * total - 100 * (before.disk + before.host);
  std::vector<tier> homes;
  std::int64_t at = 0;
  for (const std::int64_t bytes : tensor_bytes) {
    const std::int64_t middle = 100 * (2 * at + bytes); // everything is doubled to stay in integers
    if (middle < 2 * disk_end)
      homes.push_back(tier::disk);
    else if (middle < 2 * host_end)
      homes.push_back(tier::host);
    else
      homes.push_back(tier::device);
    at += bytes;
  }
  return homes;
}

std::vector<tier> spread_tiers(std::int64_t n, const shares& wanted) {
  constexpr std::int64_t one[] = {1};
  std::vector<tier> homes;
  placed_bytes before;
  while (static_cast<std::int64_t>(homes.size()) < n) {
    const tier next = assign_tiers(one, wanted, before).front();
    homes.push_back(next);
    ++(next == tier::device ? before.device : next == tier::host ? before.host : before.disk);
  }
  return homes;
}

} // namespace twill::models::offload
