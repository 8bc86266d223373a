// user: the rights of the process: which user it becomes, how many files it may open, and who else
// can read its secrets.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace twill::tools {

struct user {
  std::string name;
  uid_t id = 0;
  gid_t group = 0;
};

/// The user of `server.user`. Throws std::runtime_error when there is none of that name, or when
/// this process may not become it.
user find_user(const std::string& name);

/// Takes on the user's rights, with all its groups, and leaves no way back. All threads follow.
/// Throws std::runtime_error; the process must then end.
void become(const user& wanted);

/// Raises the limit of open files to what so many sockets need. Returns what to warn of, or
/// nothing.
std::string allow_open_files(std::int64_t max_connections);

/// Whether users outside the file's owner and group can read it.
bool others_can_read(const std::string& path);

} // namespace twill::tools
