#include "config/base/standard_streams.hpp"

#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace twill {

void open_missing_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // open() takes the lowest free descriptor, which is this one: those before it are open.
    if (open("/dev/null", O_RDWR) != stream) std::_Exit(EXIT_FAILURE);
  }
}

} // namespace twill
