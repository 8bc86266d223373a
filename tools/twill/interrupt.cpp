#include "tools/twill/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace twill::tools {
namespace {

std::atomic<int> seen{0};
std::atomic<int> ending{0};
static_assert(std::atomic<int>::is_always_lock_free);

} // namespace

void count_interrupts(bool terminations) {
  struct sigaction action {};
  // The third Ctrl-C ends the process, whatever the program is doing.
  action.sa_handler = [](int) {
    if (seen.fetch_add(1) >= 2) _exit(128 + SIGINT);
  };
  sigaction(SIGINT, &action, nullptr); // no SA_RESTART: a pending read returns
  if (terminations) sigaction(SIGTERM, &action, nullptr);
}

int interrupts() {
  return seen.load();
}
void clear_interrupts() {
  seen.store(0);
}

void note_endings() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    if (ending.exchange(signal) != 0) _exit(128 + signal);
  };
  for (const int signal : {SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // keep a signal ignored if it was ignored at the start, as under nohup
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

int noted_ending() {
  return ending.load();
}

} // namespace twill::tools
