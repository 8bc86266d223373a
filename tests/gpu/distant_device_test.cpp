#include "tests/gpu/distant_device.hpp"

#include <csignal>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "gpu/copy_stream.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/ragged_case.hpp"

using namespace twill;

namespace {

/// The signal that ends a child process which runs `f`; 0 if it returns.
template <class F>
int signal_of(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

} // namespace

TEST_CASE("a distant device's memory is reached by its copies, and kills who touches it") {
  auto dev = test::open_distant({.threads = 1});
  CHECK(!dev->memory_is_host());
  test::device_array<float> values(*dev, {1, 2, 3});
  CHECK(values.get() == std::vector<float>{1, 2, 3});
  volatile float* data = values.data();
  CHECK(signal_of([] {}) == 0);
  CHECK(signal_of([&] { static_cast<void>(data[0]); }) == SIGSEGV);
  CHECK(signal_of([&] { data[0] = 4; }) == SIGSEGV);
}

TEST_CASE("copy streams reach a distant device's memory too") {
  auto dev = test::open_distant({.threads = 1});
  const test::distant_transfers transfers;
  CHECK(!gpu::device_memory_is_host());
  const auto memory = dev->allocate(16, "copy").value();
  const std::vector<unsigned char> sent(16, 9);
  std::vector<unsigned char> back(16);
  gpu::copy_stream stream;
  REQUIRE(stream.to_device(memory.data(), sent.data(), 16).ok());
  REQUIRE(stream.to_host(back.data(), memory.data(), 16).ok());
  CHECK(back == sent);
}
