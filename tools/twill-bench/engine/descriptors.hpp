// descriptors: the limit of sockets and files that this process may have open.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace twill::bench {

/// Raises the soft limit of open files to the hard limit and returns the resulting limit.
inline std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return static_cast<std::size_t>(limit.rlim_cur);
}

} // namespace twill::bench
