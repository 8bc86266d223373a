// child: a program started for a measurement, in a process group of its own, ended with its owner.
//
// One thread. The constructor throws std::runtime_error when the program can't be started; the
// destructor ends the group: SIGTERM, and SIGKILL after `grace`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace twill::bench {

struct child_order {
  std::vector<std::string> command; ///< program and arguments; the program is looked up on PATH
  std::vector<std::pair<std::string, std::string>>
      environment;      ///< added to this process's environment
  std::string folder;   ///< working directory; empty: this process's
  std::string log_path; ///< takes standard output and standard error
  std::chrono::milliseconds grace{10'000};
};

class child {
public:
  explicit child(const child_order& order);
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  bool running();
  /// Exit status; 128 + signal for one that a signal ended; -1 while it runs.
  int exit_status() const { return status_; }
  /// Waits; false when the program still runs after that time.
  bool wait_for_end(std::chrono::milliseconds limit);
  /// True when it ended by SIGTERM within its grace; else its group was killed.
  bool end();
  std::chrono::steady_clock::time_point started() const { return started_; }

private:
  bool wait_for_group(std::chrono::milliseconds limit);

  pid_t pid_ = -1;
  int status_ = -1;
  std::chrono::milliseconds grace_;
  std::chrono::steady_clock::time_point started_;
};

} // namespace twill::bench
