#include "tools/twilld/user.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace twill::tools {
namespace {

/// File descriptors that the model, the batches, the engine and the log need in addition to the
/// sockets.
constexpr rlim_t own_files = 512;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::runtime_error("cannot become `server.user` " + name + ": " + why);
}

} // namespace

user find_user(const std::string& name) {
  errno = 0;
  const auto* entry = ::getpwnam(name.c_str());
  if (entry == nullptr)
    throw std::runtime_error("`server.user` must be a user of this system, got \"" + name + "\"");
  const user found{name, entry->pw_uid, entry->pw_gid};
  if (::geteuid() != 0 && ::geteuid() != found.id)
    throw std::runtime_error(
        "`server.user` needs a daemon that root starts; this one runs as user " +
        std::to_string(::geteuid()) + ", got \"" + name + "\"");
  return found;
}

void become(const user& wanted) {
  if (::geteuid() == 0) {
    if (::initgroups(wanted.name.c_str(), wanted.group) != 0 ||
        ::setresgid(wanted.group, wanted.group, wanted.group) != 0 ||
        ::setresuid(wanted.id, wanted.id, wanted.id) != 0)
      refuse(wanted.name, std::strerror(errno));
  }
  uid_t real = 0, effective = 0, saved = 0;
  ::getresuid(&real, &effective, &saved);
  const bool is_it = real == wanted.id && effective == wanted.id && saved == wanted.id;
  if (!is_it) refuse(wanted.name, "the process still has another user's rights");
  if (wanted.id != 0 && (::setuid(0) == 0 || ::seteuid(0) == 0))
    refuse(wanted.name, "the process could become root again");
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); // also not by executing a program with the set-user-ID
                                            // bit
}

std::string allow_open_files(std::int64_t max_connections) {
  const auto needed = static_cast<rlim_t>(max_connections) + own_files;
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur >= needed) return {};
  rlimit wanted{needed, std::max(needed, now.rlim_max)};
  if (::setrlimit(RLIMIT_NOFILE, &wanted) == 0) return {};
  wanted = {std::min(needed, now.rlim_max), now.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &wanted) != 0) wanted = now;
  if (wanted.rlim_cur >= needed) return {};
  const auto room = wanted.rlim_cur > own_files ? wanted.rlim_cur - own_files : 0;
  return "`server.max_connections` is " + std::to_string(max_connections) +
         ", but this process may open " + std::to_string(wanted.rlim_cur) +
         " files, enough for about " + std::to_string(room) +
         " sockets; raise the limit (ulimit -n, LimitNOFILE) or lower `server.max_connections`";
}

bool others_can_read(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && (about.st_mode & S_IROTH) != 0;
}

} // namespace twill::tools
