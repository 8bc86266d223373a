// child: a program that was started for a measurement, in a process group of its own. It ends with
// this object.
//
// Only one thread at a time may use an object. The constructor throws std::runtime_error when the
// program can't be started. The destructor ends the process group with SIGTERM, and with SIGKILL
// after `grace`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace twill::bench {

struct child_order {
  std::vector<std::string> command; ///< program and arguments; the program is searched on PATH
  std::vector<std::pair<std::string, std::string>>
      /// Added to the environment of this process.
      environment;
  std::string folder;   ///< working directory; empty: this process's
  std::string log_path; ///< receives standard output and standard error
  std::chrono::milliseconds grace{10'000};
};

class child {
public:
  explicit child(const child_order& order);
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  bool running();
  /// The exit status; 128 + signal when a signal ended the program; -1 while it runs.
  int exit_status() const { return status_; }
  /// Waits for the program to end; returns false when it still runs after that time.
  bool wait_for_end(std::chrono::milliseconds limit);
  /// Ends the program. Returns true when it ended by SIGTERM within `grace`; otherwise its process
  /// group was killed.
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
