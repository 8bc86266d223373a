// passed_sockets: the listening sockets that the service manager opened and passed to this process
// at its start (socket activation, sd_listen_fds(3)).
#pragma once

#include <vector>

namespace twill::tools {

/// Returns the descriptors that $LISTEN_FDS counts, in order, when $LISTEN_PID is this process;
/// otherwise none. Removes both variables from the environment, so call it before other threads
/// exist. Throws std::runtime_error when the variables are malformed or a descriptor is not open.
std::vector<int> passed_sockets();

} // namespace twill::tools
