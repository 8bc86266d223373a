#include "tools/twilld/passed_sockets.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tools/twilld/environment.hpp"

namespace twill::tools {
namespace {

constexpr int first_descriptor = 3; ///< fixed by the protocol (SD_LISTEN_FDS_START)
constexpr int most_descriptors = 1024;

} // namespace

std::vector<int> passed_sockets() {
  const auto process = take_variable("LISTEN_PID");
  const auto count = take_variable("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  if (count.empty() || process != std::to_string(::getpid())) return {};
  int n = 0;
  const auto [stop, fault] = std::from_chars(count.data(), count.data() + count.size(), n);
  if (fault != std::errc{} || stop != count.data() + count.size() || n < 0 || n > most_descriptors)
    throw std::runtime_error("LISTEN_FDS must be between 0 and " +
                             std::to_string(most_descriptors) + ", got \"" + count + "\"");
  std::vector<int> passed;
  for (int descriptor = first_descriptor; descriptor < first_descriptor + n; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0)
      throw std::runtime_error("LISTEN_FDS promises " + count + " sockets, but descriptor " +
                               std::to_string(descriptor) + " is not open");
    passed.push_back(descriptor);
  }
  return passed;
}

} // namespace twill::tools
