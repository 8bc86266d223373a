// How a process ends when Kokkos aborts it. Each case runs in a child process.
#include "gpu/detail/kokkos_abort.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "config/base/log.hpp"
#include "tests/catch.hpp"

using namespace twill;

namespace {

struct ending {
  int status = 0;
  std::string words;
};

/// Forks a copy of this process, which runs `what` and must be ended by it; returns how it ended.
ending end_of(
    const std::function<void()>& what, bool (*is_lost)() = [] { return true; }) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::signal(SIGABRT, SIG_DFL); // Catch's own handler reports the test as failed
    log::configure(log::level::info);
    gpu::detail::log_aborts_of_kokkos(is_lost, 1);
    gpu::detail::log_aborts_of_kokkos(is_lost, 1); // again, as a second device does
    what();
    ::_exit(EXIT_SUCCESS);
  }
  ::close(ends[1]);
  ending found;
  std::array<char, 4096> text{};
  for (ssize_t n = 0; (n = ::read(ends[0], text.data(), text.size())) > 0;)
    found.words.append(text.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  REQUIRE(::waitpid(child, &found.status, 0) == child);
  return found;
}

} // namespace

TEST_CASE("an abort of Kokkos on a lost GPU ends the process with a line and status 1",
          "[device]") {
  const auto found = end_of([] {
    const gpu::detail::kokkos_call call;
    std::abort();
  });
  REQUIRE(WIFEXITED(found.status));
  CHECK(WEXITSTATUS(found.status) == 1);
  CHECK(found.words.find("the device is lost: a kernel failed on the GPU") != std::string::npos);
  CHECK(std::count(found.words.begin(), found.words.end(), '\n') == 1);
}

TEST_CASE("any other abort stays one", "[device]") {
  const auto found = end_of([] {
    { const gpu::detail::kokkos_call over; }
    std::abort();
  });
  REQUIRE(WIFSIGNALED(found.status));
  CHECK(WTERMSIG(found.status) == SIGABRT);
  CHECK(found.words.empty());
  const auto beside = end_of([] {
    const gpu::detail::kokkos_call call;
    std::thread([] { std::abort(); }).join();
  });
  CHECK(WIFSIGNALED(beside.status));
  const auto sound = end_of(
      [] {
        const gpu::detail::kokkos_call call;
        std::abort();
      },
      [] { return false; });
  REQUIRE(WIFSIGNALED(sound.status));
  CHECK(WTERMSIG(sound.status) == SIGABRT);
  CHECK(sound.words.empty());
}

TEST_CASE("an abort whose line cannot be written ends the process all the same", "[device]") {
  const auto hung = end_of(
      [] {
        const gpu::detail::kokkos_call call;
        std::abort();
      },
      []() -> bool {
        for (;;)
          ::pause();
      });
  REQUIRE(WIFSIGNALED(hung.status));
  CHECK(WTERMSIG(hung.status) == SIGALRM);
}
