// listeners: the sockets that a server accepts clients on. A public header of net/: the daemon
// opens them first, while it may still have the rights for low ports, and hands them to the server
// later.
//
// An address is HOST:PORT, [IPV6]:PORT or unix:/PATH. A Unix socket has mode 0660; one that a dead
// process left behind is replaced, one on which somebody listens is not. The destructor closes what
// was not taken and removes the paths of its Unix sockets. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace twill::net {

struct listener {
  int descriptor = -1; ///< -1 once it was taken
  std::string host;    ///< empty for a Unix socket
  std::uint16_t port = 0;
  std::string path;         ///< of a Unix socket
  std::uint64_t device = 0; ///< with `inode`: whether the path is still ours
  std::uint64_t inode = 0;  ///< 0: the path is somebody else's
  int family = 0;           ///< AF_INET, AF_INET6 or AF_UNIX

  /// "127.0.0.1:8080", "[::1]:8080" or "unix:/run/twill.sock"
  std::string address() const;
  /// Only processes of this machine can connect.
  bool is_local() const;
};

class listeners {
public:
  /// Throws std::runtime_error that names the address and the reason. `key` gave the addresses.
  static listeners open(const std::vector<std::string>& addresses,
                        const std::string& key = "server.listen");
  /// That of `server.agent_listen`, where a port alone is one of 127.0.0.1; none where it is empty.
  static listeners open_agent(const std::string& address);
  /// Sockets that somebody else opened and that listen already; this object owns the descriptors,
  /// and never the paths. Throws std::runtime_error for a descriptor that is no such socket.
  static listeners adopt(const std::vector<int>& descriptors);
  listeners() = default;
  listeners(listeners&&) noexcept = default;
  listeners& operator=(listeners&&) = delete;
  ~listeners();

  const std::vector<listener>& all() const noexcept { return all_; }
  /// Hands over a descriptor; its new owner closes it.
  int take(std::size_t i);
  /// Gives the Unix sockets that were opened here to this user, so that its processes can connect.
  void give_to(uid_t user, gid_t group) const;

private:
  std::vector<listener> all_;
};

} // namespace twill::net
