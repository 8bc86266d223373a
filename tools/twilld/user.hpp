// user: the privileges of the process: which user it becomes, how many files it may open, and
// whether other users can read its secret files.
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

/// Looks up the user that `server.user` names. Throws std::runtime_error when that user does not
/// exist, or when this process may not become that user.
user find_user(const std::string& name);

/// Permanently switches the whole process, all threads included, to the user's identity and groups.
/// Throws std::runtime_error on failure; the process must then end.
void become(const user& wanted);

/// Raises the limit on open files to what `max_connections` connections need. Returns a warning for
/// the log, or an empty text.
std::string allow_open_files(std::int64_t max_connections);

/// Whether users other than the file's owner and group can read the file.
bool others_can_read(const std::string& path);

} // namespace twill::tools
