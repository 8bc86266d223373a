#include "tools/twilld/file_keeper.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace twill::tools {
namespace {

/// The header of a reply from the child process. It is followed by the file's content, or by an
/// error message if `ok` is 0.
struct answer_head {
  std::uint32_t ok;
  std::uint32_t bytes;
};

bool send_all(int to, const void* data, std::size_t n) {
  const auto* at = static_cast<const char*>(data);
  while (n > 0) {
    const auto sent = ::send(to, at, n, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    n -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int from, void* data, std::size_t n) {
  auto* at = static_cast<char*>(data);
  while (n > 0) {
    const auto got = ::recv(from, at, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    n -= static_cast<std::size_t>(got);
  }
  return true;
}

/// The main loop of the child process: the daemon sends the index of a path, the child replies with
/// the file. It ends when the daemon closes the socket.
[[noreturn]] void keep(int line, const std::vector<std::string>& paths) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::signal(signal, SIG_IGN); // these signals are meant for the daemon; the child ends after it
  ::prctl(PR_SET_NAME, "twilld-files");
#ifdef SYS_close_range
  if (line > 3) ::syscall(SYS_close_range, 3, line - 1, 0);
  ::syscall(SYS_close_range, line + 1, ~0U, 0);
#endif
  std::uint8_t which = 0;
  while (receive_all(line, &which, 1) && which < paths.size()) {
    const auto read = read_file(paths[which], max_file_bytes);
    const auto& text = read.ok() ? read.value() : read.detail();
    const answer_head head{read.ok() ? 1u : 0u, static_cast<std::uint32_t>(text.size())};
    if (!send_all(line, &head, sizeof head) || !send_all(line, text.data(), text.size())) break;
  }
  ::_exit(0);
}

} // namespace

file_keeper::file_keeper(std::vector<std::string> paths) : paths_(std::move(paths)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(std::string("cannot make a socket pair: ") + std::strerror(errno));
  process_ = ::fork();
  if (process_ == 0) keep(ends[1], paths_);
  ::close(ends[1]);
  line_ = ends[0];
  if (process_ > 0) return;
  ::close(line_);
  throw std::runtime_error(std::string("cannot start the process that keeps root's rights: ") +
                           std::strerror(errno));
}

file_keeper::~file_keeper() {
  ::close(line_);
  ::waitpid(process_, nullptr, 0);
}

result<std::string, file_errc> file_keeper::read(const std::string& path) {
  const auto found = std::find(paths_.begin(), paths_.end(), path);
  if (found == paths_.end()) return read_file(path, max_file_bytes);
  const auto which = static_cast<std::uint8_t>(found - paths_.begin());
  answer_head head{};
  std::string text;
  bool whole = send_all(line_, &which, 1) && receive_all(line_, &head, sizeof head) &&
               head.bytes <= 2 * max_file_bytes;
  if (whole) {
    text.resize(head.bytes);
    whole = receive_all(line_, text.data(), text.size());
  }
  if (!whole)
    return failure{file_errc::unreadable, path + ": the process that keeps root's rights is gone"};
  if (head.ok == 0) return failure{file_errc::unreadable, std::move(text)};
  return text;
}

} // namespace twill::tools
