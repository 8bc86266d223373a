// fleet_watch: looks at several daemons at the same time, each on a thread of its own, so that one
// that is slow or silent holds up none of the others.
#pragma once

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/common/endpoint.hpp"
#include "tools/twill/fleet_view.hpp"

namespace twill::tools {

/// A daemon that takes longer than this for one look does not answer.
inline constexpr std::chrono::milliseconds look_patience{5000};

/// Looks again and again until it is destroyed, `pause` after each look. Any thread may ask for
/// members().
class fleet_watch {
public:
  fleet_watch(const std::vector<endpoint>& daemons, std::chrono::milliseconds pause);
  fleet_watch(const fleet_watch&) = delete;
  fleet_watch& operator=(const fleet_watch&) = delete;
  /// Ends the looks that are under way.
  ~fleet_watch();

  std::vector<fleet_member> members() const;

private:
  void look_on(std::size_t index, const endpoint& where, std::chrono::milliseconds pause,
               const std::stop_token& stop);

  mutable std::mutex mutex_;
  std::vector<fleet_member> members_;
  std::vector<std::jthread> threads_;
};

/// Two looks at each daemon with `pause` between them, and one alone at a daemon that fails then.
std::vector<fleet_member> look_twice(const std::vector<endpoint>& daemons,
                                     std::chrono::milliseconds pause);

} // namespace twill::tools
