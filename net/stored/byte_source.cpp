#include "net/stored/byte_source.hpp"

#include <cerrno>

namespace twill::net {

std::error_code last_error() {
  return {errno, std::generic_category()};
}

std::error_code file_source::read(char* to, std::size_t n, std::int64_t at) {
  while (n > 0) {
    const auto got = ops_.read(file_, to, n, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return last_error();
    if (got == 0) return make_error_code(std::errc::bad_message);
    to += got;
    at += got;
    n -= static_cast<std::size_t>(got);
  }
  return {};
}

std::error_code write_all(file_ops& ops, int file, std::string_view bytes, std::int64_t at) {
  while (!bytes.empty()) {
    const auto n = ops.write(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return make_error_code(std::errc::no_space_on_device);
    if (n < 0) return last_error();
    bytes.remove_prefix(static_cast<std::size_t>(n));
    at += n;
  }
  return {};
}

} // namespace twill::net
