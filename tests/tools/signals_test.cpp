// Signals of twilld, in a child process: the handlers run in order, and the third stop signal
// always ends the process.
#include "tools/twilld/signals.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace std::chrono_literals;
using twill::tools::signal_waiter;

namespace {

/// Sends a signal and waits, 10 s at most, until the process has taken it. Otherwise the next
/// signal of the same number could be merged into this one.
void send(pid_t child, int number) {
  ::kill(child, number);
  for (int i = 0; i < 10000; ++i) {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    std::uint64_t waiting = 0;
    for (std::string word; status >> word;)
      if (word == "ShdPnd:") status >> std::hex >> waiting;
    if ((waiting >> (number - 1) & 1) == 0) return;
    std::this_thread::sleep_for(1ms);
  }
}

/// The exit status of a child that runs `body`, or -1 when it ends otherwise or not in 10 s.
template <class Body, class Then>
int in_child(Body&& body, Then&& then) {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    body([&] { (void)!::write(ready[1], "r", 1); });
    ::_exit(42);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  then(child);
  for (int i = 0; i < 1000; ++i) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1;
}

} // namespace

TEST_CASE("the third stop ends the process while the first one's work hangs") {
  const int status = in_child(
      [](auto&& ready) {
        signal_waiter signals;
        signals.start([](int) { std::this_thread::sleep_for(1h); });
        ready();
        std::this_thread::sleep_for(1h);
      },
      [](pid_t child) {
        for (int i = 0; i < 3; ++i)
          send(child, i == 1 ? SIGINT : SIGTERM);
      });
  CHECK(status == EXIT_FAILURE);
}

TEST_CASE("stops count also after no function is called any more") {
  const int status = in_child(
      [](auto&& ready) {
        signal_waiter signals;
        signals.start([](int) {});
        signals.stop();
        ready();
        std::this_thread::sleep_for(1h);
      },
      [](pid_t child) {
        for (int i = 0; i < 3; ++i)
          send(child, SIGTERM);
      });
  CHECK(status == EXIT_FAILURE);
}

TEST_CASE("signals are delivered one by one, and hang-ups never end the process") {
  const int status = in_child(
      [](auto&& ready) {
        int n = 0;
        signal_waiter signals;
        signals.start([&n](int signal) { n += signal == SIGHUP ? 1 : 100; });
        ready();
        for (int i = 0; i < 500 && n < 105; ++i)
          std::this_thread::sleep_for(10ms);
        signals.stop();
        ::_exit(n == 105 ? 7 : 8);
      },
      [](pid_t child) {
        for (int i = 0; i < 6; ++i)
          send(child, i < 5 ? SIGHUP : SIGTERM);
      });
  CHECK(status == 7);
}
