// passed_sockets: sockets that the service manager opened for this process and handed over when it
// started it (socket activation, sd_listen_fds(3)).
#pragma once

#include <vector>

namespace twill::tools {

/// The descriptors of $LISTEN_FDS when $LISTEN_PID is this process, in their order; none otherwise.
/// Removes the variables from the environment, so call it before other threads exist. Throws
/// std::runtime_error when the variables promise what is not there.
std::vector<int> passed_sockets();

} // namespace twill::tools
