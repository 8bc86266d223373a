// listeners: the sockets on which a server accepts clients. A public header of net/: the daemon
// opens the listeners first, while it may still have the permission to bind low ports, and hands
// them to the server later.
//
// An address is HOST:PORT, [IPV6]:PORT or unix:/PATH. A Unix socket gets mode 0660. A Unix socket
// that a dead process left behind is replaced; a Unix socket on which another process listens is
// not. The destructor closes every descriptor that was not taken and removes the paths of the Unix
// sockets opened here. Only one thread at a time may use an object.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace twill::net {

struct listener {
  int descriptor = -1; ///< -1 after take()
  std::string host;    ///< empty for a Unix socket
  std::uint16_t port = 0;
  std::string path;         ///< path of a Unix socket; empty for TCP
  std::uint64_t device = 0; ///< device and inode identify the file at `path`, to check that it is
                            ///< still our socket
  std::uint64_t inode = 0;  ///< 0: another process owns the path
  int family = 0;           ///< AF_INET, AF_INET6 or AF_UNIX

  /// "127.0.0.1:8080", "[::1]:8080" or "unix:/run/twill.sock"
  std::string address() const;
  /// Whether only processes of this machine can connect.
  bool is_local() const;
};

class listeners {
public:
  /// Throws std::runtime_error that names the address and the reason. `key` is the configuration
  /// key that gave the addresses; error messages name it.
  static listeners open(const std::vector<std::string>& addresses,
                        const std::string& key = "server.listen");
  /// Opens the listener of `server.agent_listen`. A port without a host means 127.0.0.1; an empty
  /// address opens no listener.
  static listeners open_agent(const std::string& address);
  /// Adopts listening sockets that another process opened. This object owns the descriptors, but
  /// does not remove the paths of Unix sockets. Throws std::runtime_error for a descriptor that is
  /// not a listening socket.
  static listeners adopt(const std::vector<int>& descriptors);
  listeners() = default;
  listeners(listeners&&) noexcept = default;
  listeners& operator=(listeners&&) = delete;
  ~listeners();

  const std::vector<listener>& all() const noexcept { return all_; }
  /// Transfers the ownership of descriptor `i` to the caller, who must close it.
  int take(std::size_t i);
  /// Changes the owner of the Unix sockets that were opened here, so that processes of this user
  /// and group can connect.
  void give_to(uid_t user, gid_t group) const;

private:
  std::vector<listener> all_;
};

} // namespace twill::net
