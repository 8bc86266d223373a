#include "config/base/standard_streams.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace twill;

namespace {

/// Runs in the child: whether the closed streams become /dev/null, and the others stay as before.
bool opens_what_is_closed(unsigned closed) {
  struct stat before[3], null, after;
  if (stat("/dev/null", &null) != 0) return false;
  for (int stream = 0; stream < 3; ++stream) {
    if (fstat(stream, &before[stream]) != 0) before[stream] = null;
    if ((closed & (1U << stream)) != 0) close(stream);
  }
  open_missing_standard_streams();
  for (int stream = 0; stream < 3; ++stream) {
    const auto& wanted = (closed & (1U << stream)) != 0 ? null : before[stream];
    if (fstat(stream, &after) != 0 || after.st_rdev != wanted.st_rdev ||
        after.st_ino != wanted.st_ino)
      return false;
  }
  return true;
}

} // namespace

TEST_CASE("whichever of the descriptors 0 to 2 are closed, they are open afterwards", "[config]") {
  for (unsigned closed = 0; closed < 8; ++closed) {
    CAPTURE(closed);
    const auto child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(opens_what_is_closed(closed) ? 0 : 1);
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}
