#include "net/listeners.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "config/base/ip_network.hpp"

namespace twill::net {
namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr mode_t unix_mode = 0660;

/// An address and the configuration key that gave it.
struct given_address {
  const std::string& key;
  const std::string& text;
};

[[noreturn]] void refuse(const given_address& given, const std::string& why) {
  throw std::runtime_error("cannot listen on `" + given.key + "` " + given.text + ": " + why);
}

/// Advice on how to fix the error; empty where the name of the error is advice enough.
std::string remedy(const given_address& given, int error) {
  const bool front = given.key == "server.listen";
  const std::string other = front ? "`--listen`" : "`--set " + given.key + "=`";
  if (error == EADDRINUSE)
    return "; another program listens there: end it, or name another address with " + other +
           (given.text.starts_with(unix_prefix) ? "" : " (port 0 takes a free one)");
  if (error == EADDRNOTAVAIL)
    return "; name an address of this machine with " + other +
           ", such as 127.0.0.1:8080, or 0.0.0.0:8080 for all of them";
  if (error == EACCES && !given.text.starts_with(unix_prefix))
    return "; ports below 1024 are for root: name a higher one with " + other;
  return {};
}

[[noreturn]] void refuse(const given_address& given, int error) {
  refuse(given, std::strerror(error) + remedy(given, error));
}

/// Opens, binds and listens. Returns errno of the failure, or 0 on success.
int bind_to(listener& to, const sockaddr* address, socklen_t length, bool only_v6) {
  to.family = address->sa_family;
  to.descriptor = ::socket(to.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (to.descriptor < 0) return errno;
  const int on = 1;
  const int v6 = only_v6 ? 1 : 0;
  if (to.family != AF_UNIX) ::setsockopt(to.descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (to.family == AF_INET6 && only_v6)
    ::setsockopt(to.descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &v6, sizeof v6);
  if (::bind(to.descriptor, address, length) == 0 && ::listen(to.descriptor, SOMAXCONN) == 0)
    return 0;
  const int error = errno;
  ::close(std::exchange(to.descriptor, -1));
  return error;
}

/// Whether a process accepts connections at this path.
bool somebody_listens(const sockaddr_un& at) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return true;
  const bool refused = ::connect(probe, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 &&
                       errno == ECONNREFUSED;
  ::close(probe);
  return !refused;
}

listener open_unix(const given_address& address) {
  listener made;
  made.path = address.text.substr(unix_prefix.size());
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (made.path.empty() || made.path.size() >= sizeof where.sun_path)
    refuse(address, "the path of a Unix socket must have 1 to " +
                        std::to_string(sizeof where.sun_path - 1) + " bytes");
  std::memcpy(where.sun_path, made.path.data(), made.path.size());
  const auto before = ::umask(static_cast<mode_t>(0777 & ~unix_mode));
  const auto try_once = [&] {
    return bind_to(made, reinterpret_cast<const sockaddr*>(&where), sizeof where, false);
  };
  int error = try_once();
  struct stat found {};
  if (error == EADDRINUSE && ::lstat(made.path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      ::umask(before);
      refuse(address, "the path exists and is not a socket");
    }
    if (!somebody_listens(where) && ::unlink(made.path.c_str()) == 0) error = try_once();
  }
  ::umask(before);
  if (error != 0) refuse(address, error);
  if (::lstat(made.path.c_str(), &found) == 0) {
    made.device = found.st_dev;
    made.inode = found.st_ino;
  }
  return made;
}

/// Fills in the address that the socket is bound to.
void read_address(listener& of) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  ::getsockname(of.descriptor, reinterpret_cast<sockaddr*>(&bound), &length);
  char text[INET6_ADDRSTRLEN] = "";
  if (bound.ss_family == AF_UNIX) {
    const auto& named = reinterpret_cast<const sockaddr_un&>(bound);
    const char* begin = named.sun_path;
    const char* end = reinterpret_cast<const char*>(&bound) + length;
    const std::string path(begin, std::max(begin, end));
    // The name of an abstract socket begins with a zero byte, which is shown as '@'.
    of.path = path.empty() || path[0] != '\0' ? path.c_str() : "@" + path.substr(1);
  } else if (bound.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(bound);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    of.port = ntohs(v6.sin6_port);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(bound);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    of.port = ntohs(v4.sin_port);
  }
  of.host = text;
}

listener open_tcp(const given_address& given, bool only_v6) {
  const auto& address = given.text;
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size())
    throw std::runtime_error("`" + given.key + "` must be HOST:PORT or unix:/PATH, got \"" +
                             address + "\"");
  auto host = address.substr(0, colon);
  std::uint16_t port = 0;
  const auto* end = address.data() + address.size();
  const auto [stop, fault] = std::from_chars(address.data() + colon + 1, end, port);
  if (fault != std::errc{} || stop != end) refuse(given, "the port must be between 0 and 65535");
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (failed != 0) refuse(given, std::string(::gai_strerror(failed)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(first, &::freeaddrinfo);
  listener made;
  const int error = bind_to(made, found->ai_addr, found->ai_addrlen, only_v6);
  if (error != 0) refuse(given, error);
  read_address(made);
  return made;
}

/// The value of a getsockopt() option; -1 when the descriptor is not a socket.
int socket_option(int descriptor, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

listener adopted(int descriptor) {
  listener made;
  made.family = socket_option(descriptor, SO_DOMAIN);
  const bool known = made.family == AF_INET || made.family == AF_INET6 || made.family == AF_UNIX;
  if (!known || socket_option(descriptor, SO_TYPE) != SOCK_STREAM ||
      socket_option(descriptor, SO_ACCEPTCONN) != 1)
    throw std::runtime_error("descriptor " + std::to_string(descriptor) +
                             " was passed to this process and must be a TCP or Unix stream socket "
                             "that listens (`ListenStream=` with `Accept=no` in a socket unit)");
  made.descriptor = descriptor;
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  read_address(made);
  return made;
}

} // namespace

std::string listener::address() const {
  if (!path.empty()) return std::string(unix_prefix) + path;
  return (family == AF_INET6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool listener::is_local() const {
  if (!path.empty()) return true;
  const auto parsed = ip_address::parse(host);
  return parsed.has_value() && parsed->is_loopback();
}

listeners listeners::open(const std::vector<std::string>& addresses, const std::string& key) {
  if (addresses.empty()) throw std::runtime_error("`" + key + "` must name an address, got none");
  listeners made;
  for (const auto& address : addresses)
    made.all_.push_back(address.starts_with(unix_prefix)
                            ? open_unix({key, address})
                            // [::]:80 also accepts IPv4, unless the list has other addresses.
                            : open_tcp({key, address}, addresses.size() > 1));
  return made;
}

listeners listeners::open_agent(const std::string& address) {
  if (address.empty()) return {};
  const bool only_port = address.find(':') == std::string::npos;
  return open({only_port ? "127.0.0.1:" + address : address}, "server.agent_listen");
}

listeners listeners::adopt(const std::vector<int>& descriptors) {
  listeners made;
  for (const int descriptor : descriptors)
    made.all_.push_back(adopted(descriptor));
  return made;
}

listeners::~listeners() {
  for (const auto& one : all_) {
    if (one.descriptor >= 0) ::close(one.descriptor);
    struct stat found {};
    if (!one.path.empty() && ::lstat(one.path.c_str(), &found) == 0 && found.st_dev == one.device &&
        found.st_ino == one.inode)
      ::unlink(one.path.c_str());
  }
}

int listeners::take(std::size_t i) {
  return std::exchange(all_[i].descriptor, -1);
}

void listeners::give_to(uid_t user, gid_t group) const {
  for (const auto& one : all_)
    if (one.inode != 0 && ::lchown(one.path.c_str(), user, group) != 0)
      throw std::runtime_error("cannot give " + one.address() +
                               " to `server.user`: " + std::strerror(errno));
}

} // namespace twill::net
