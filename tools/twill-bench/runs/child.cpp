#include "tools/twill-bench/runs/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace twill::bench {
namespace {

/// Runs in the new process between fork and exec. Writes the errno of a failed call to `report`.
[[noreturn]] void become(const child_order& order, const std::vector<char*>& arguments,
                         pid_t parent, int log, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM); // if the parent is killed, the server must end, too
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  for (const auto& [name, value] : order.environment)
    setenv(name.c_str(), value.c_str(), 1);
  if (getppid() == parent && (order.folder.empty() || chdir(order.folder.c_str()) == 0))
    execvp(arguments[0], arguments.data());
  const int why = errno;
  [[maybe_unused]] const auto sent = write(report, &why, sizeof why);
  _exit(127);
}

} // namespace

child::child(const child_order& order) : grace_(order.grace) {
  std::vector<char*> arguments;
  for (const std::string& each : order.command)
    arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  const int log = open(order.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  int report[2];
  if (log < 0 || pipe2(report, O_CLOEXEC) != 0) {
    if (log >= 0) close(log);
    throw std::runtime_error("cannot write " + order.log_path + ": " + std::strerror(errno));
  }
  const pid_t parent = getpid();
  // Programs that a shell leaves behind become children of this process, so that it can wait for
  // them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  started_ = std::chrono::steady_clock::now();
  pid_ = fork();
  if (pid_ == 0) become(order, arguments, parent, log, report[1]);
  const int fork_error = errno;
  close(log);
  close(report[1]);
  int why = 0;
  // The pipe is closed when exec succeeds, and then read() returns 0.
  const auto n_read = pid_ < 0 ? 0 : read(report[0], &why, sizeof why);
  close(report[0]);
  if (pid_ < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(fork_error));
  if (n_read > 0) {
    waitpid(pid_, nullptr, 0);
    throw std::runtime_error("cannot start " + order.command.front() + ": " + std::strerror(why));
  }
}

child::~child() {
  end();
}

bool child::running() {
  if (status_ >= 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

bool child::wait_for_end(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (running()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

bool child::end() {
  bool willing = true;
  if (running()) {
    kill(-pid_, SIGTERM);
    willing = wait_for_group(grace_);
  }
  kill(-pid_, SIGKILL); // kills programs that the child left behind in its process group
  if (!willing) wait_for_end(std::chrono::seconds(5));
  return willing;
}

bool child::wait_for_group(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const bool first_runs = running();
    while (!first_runs && waitpid(-pid_, nullptr, WNOHANG) > 0) {
      // A program that a shell left behind has become a child of this process.
    }
    if (!first_runs && kill(-pid_, 0) != 0) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

} // namespace twill::bench
