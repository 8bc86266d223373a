#include "tools/twill/text_argument.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "config/base/units.hpp"
#include "tools/common/endpoint.hpp"

namespace twill::tools {
namespace {

constexpr std::size_t most_bytes = 64 * mib;

} // namespace

std::string text_argument(const std::string& given) {
  if (given != "-") return given;
  std::string text;
  char chunk[1 << 16];
  for (;;) {
    const auto n = ::read(STDIN_FILENO, chunk, sizeof chunk);
    if (n == 0) return text;
    if (n < 0)
      throw client_error(std::string("standard input cannot be read: ") + std::strerror(errno));
    text.append(chunk, static_cast<std::size_t>(n));
    if (text.size() > most_bytes) throw client_error("standard input must be at most 64 MiB long");
  }
}

} // namespace twill::tools
