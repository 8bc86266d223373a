#include "models/text/grammar/helper/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "config/base/units.hpp"
#include "models/text/grammar/helper/request.hpp"
#include "models/text/grammar/spec_text.hpp"

namespace twill::models::grammar {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t max_answer_bytes = std::size_t{64} << 20;

/// Owns a file descriptor and closes it in the destructor.
class descriptor {
public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }
  void set(int fd) {
    close();
    fd_ = fd;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

private:
  int fd_ = -1;
};

/// Owns the running helper process. If the helper has not ended, the destructor kills and reaps it.
class child {
public:
  explicit child(pid_t pid) : pid_(pid) {}
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  /// Waits until the process ends and returns its status as waitpid() gives it.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

private:
  pid_t pid_;
};

/// `error` is an errno value.
failure cannot_start(int error, const std::string& what) {
  const bool passes = error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM;
  return {passes ? errc::no_resources : errc::helper_failed,
          "the helper process that compiles grammars cannot be started: " + what +
              std::strerror(error) + (passes ? "; retry later" : "")};
}

bool make_pipe(descriptor& read_end, descriptor& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end.set(ends[0]);
  write_end.set(ends[1]);
  return true;
}

/// Writes the request and reads the answer until the answer ends or the deadline has passed.
result<std::string> talk(descriptor& to, descriptor& from, std::string_view request,
                         const compile_limits& limits, clock::time_point deadline,
                         const std::function<bool()>& is_abandoned) {
  std::string answer;
  ::fcntl(to.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(from.get(), F_SETFL, O_NONBLOCK);
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0)
      return failure{errc::overdue,
                     "the machine is too busy to compile it within structured.wait_timeout = " +
                         std::to_string(limits.patience.count()) + " ms"};
    if (is_abandoned && is_abandoned())
      return failure{errc::abandoned, "nobody waits for the grammar any more"};
    const auto patience = is_abandoned ? std::min<std::int64_t>(left, 50) : left;
    pollfd fds[2] = {{from.get(), POLLIN, 0}, {to.get(), POLLOUT, 0}};
    if (::poll(fds, to.get() >= 0 ? 2 : 1, static_cast<int>(patience)) < 0 && errno != EINTR)
      return failure{errc::helper_failed, std::string("poll: ") + std::strerror(errno)};
    if (to.get() >= 0 && fds[1].revents != 0) {
      const auto n = ::write(to.get(), request.data(), request.size());
      if (n > 0) request.remove_prefix(static_cast<std::size_t>(n));
      const bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
      if (request.empty() || broken) to.close();
    }
    if (fds[0].revents == 0) continue;
    char block[65536];
    const auto n = ::read(from.get(), block, sizeof block);
    if (n == 0) return answer;
    if (n > 0) answer.append(block, static_cast<std::size_t>(n));
    if (answer.size() > max_answer_bytes)
      return failure{errc::too_large,
                     "the grammar of the schema is larger than " +
                         format_bytes(static_cast<std::int64_t>(max_answer_bytes))};
  }
}

/// Returns why a helper ended without an answer.
failure unanswered(int status, const compile_limits& limits) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
    return {errc::timed_out,
            "compiling the grammar took more than structured.compile_timeout = " +
                std::to_string(limits.timeout.count()) +
                " ms of processor time; simplify it (large repetitions cost most)"};
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGKILL))
    return {errc::out_of_memory,
            "compiling the grammar took more memory than structured.compile_memory = " +
                format_bytes(limits.memory_bytes)};
  if (WIFSIGNALED(status))
    return {errc::too_large, "the grammar nests too deeply: its compiler ended by signal " +
                                 std::to_string(WTERMSIG(status))};
  return {errc::helper_failed, "the helper process ended without an answer, status " +
                                   std::to_string(WEXITSTATUS(status))};
}

/// Compiles a grammar that the helper process has already compiled within its limits of time and
/// memory. Compiling it again in this process therefore stays within the limits too. A separate
/// thread with a lower priority does the work.
result<compiled_grammar_ptr> compile_apart(const std::string& text, const vocabulary_ptr& tokens,
                                           bool is_json) {
  std::optional<result<compiled_grammar_ptr>> out;
  std::thread worker([&] {
    // On Linux this call sets the priority of the calling thread only.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 5);
    out.emplace(compile_here(text, tokens, is_json));
  });
  worker.join();
  return *out;
}

} // namespace

std::string default_helper() {
  std::error_code bad;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", bad);
  if (bad) return "twill-grammar";
  const auto beside = self.parent_path() / "twill-grammar";
  if (std::filesystem::exists(beside, bad)) return beside.string();
  return (self.parent_path() / TWILL_HELPER_FOLDER / "twill-grammar").lexically_normal().string();
}

result<compiled_grammar_ptr> compile_in_helper(const config::grammar_spec& spec,
                                               const vocabulary_ptr& tokens,
                                               const compile_limits& limits,
                                               const std::function<bool()>& is_abandoned) {
  const auto deadline = clock::now() + limits.patience;
  const helper_request request{.spec = spec,
                               .token_bytes = tokens->bytes,
                               .end_ids = tokens->end_ids,
                               .memory_bytes = limits.memory_bytes,
                               .repeated_items = limits.repeated_items,
                               .cpu_ms = limits.timeout.count()};
  const auto bytes = encoded(request);
  const auto helper = limits.helper.empty() ? default_helper() : limits.helper;

  descriptor request_read, request_write, answer_read, answer_write;
  if (!make_pipe(request_read, request_write) || !make_pipe(answer_read, answer_write))
    return cannot_start(errno, "");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, request_read.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, answer_write.get(), 1);
  std::string name = helper;
  char* const arguments[] = {name.data(), nullptr};
  pid_t pid = -1;
  const int bad = ::posix_spawn(&pid, helper.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (bad != 0) return cannot_start(bad, helper + ": ");
  child running(pid);
  request_read.close();
  answer_write.close();

  // If the helper ends early, writing to the pipe raises SIGPIPE, which must not end this process.
  // So the signal is blocked in this thread and discarded afterwards.
  sigset_t pipe_signal, before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const auto answer = talk(request_write, answer_read, bytes, limits, deadline, is_abandoned);
  timespec now{};
  while (::sigtimedwait(&pipe_signal, nullptr, &now) > 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!answer.ok()) return answer.error(); // the destructor of `running` ends the helper
  if (answer.value().empty()) return unanswered(running.wait(), limits);
  const auto text = decoded_answer(answer.value());
  if (!text.ok()) return text.error();
  return compile_apart(text.value(), tokens, writes_json(spec));
}

} // namespace twill::models::grammar
