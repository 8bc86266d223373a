// fleet_watch: queries several daemons at the same time, each on a thread of its own, so that a
// slow or silent daemon does not delay the others.
#pragma once

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/common/endpoint.hpp"
#include "tools/twill/fleet_view.hpp"

namespace twill::tools {

/// A daemon that does not reply to a query within this time counts as not answering.
inline constexpr std::chrono::milliseconds look_patience{5000};

/// Queries each daemon repeatedly until the object is destroyed, with `pause` after each query. Any
/// thread may call members().
class fleet_watch {
public:
  fleet_watch(const std::vector<endpoint>& daemons, std::chrono::milliseconds pause);
  fleet_watch(const fleet_watch&) = delete;
  fleet_watch& operator=(const fleet_watch&) = delete;
  /// Ends the running queries.
  ~fleet_watch();

  std::vector<fleet_member> members() const;

private:
  void look_on(std::size_t index, const endpoint& where, std::chrono::milliseconds pause,
               const std::stop_token& stop);

  mutable std::mutex mutex_;
  std::vector<fleet_member> members_;
  std::vector<std::jthread> threads_;
};

/// Queries each daemon twice with `pause` in between. A daemon whose first query fails is not
/// queried again.
std::vector<fleet_member> look_twice(const std::vector<endpoint>& daemons,
                                     std::chrono::milliseconds pause);

} // namespace twill::tools
