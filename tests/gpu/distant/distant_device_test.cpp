#include "tests/gpu/distant/distant_device.hpp"

#include <csignal>
#include <cstring>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "gpu/copy_stream.hpp"
#include "gpu/detail/launches.hpp"
#include "gpu/rows/elementwise.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/ragged_case.hpp"

using namespace twill;

namespace {

/// Runs `f` in a child process. Returns the signal that ends the child, or 0 if `f` returns.
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

TEST_CASE("a distant device does what was only begun when somebody waits for it, in order") {
  auto dev = test::open_distant({.threads = 1});
  const auto memory = dev->allocate(4, "late").value();
  int sent = 1, back = 0;
  const std::int64_t launched = gpu::detail::launches;
  dev->enqueue_upload(memory.data(), &sent, 4);
  dev->enqueue_download(&back, memory.data(), 4);
  CHECK(back == 0);
  sent = 2; // not yet read by the device; real programs must not do this
  dev->fence();
  CHECK(back == 2);
  const test::device_array<float> value(*dev, {-3});
  gpu::activate(*dev, gpu::view_2d(value.data(), gpu::dtype::f32, 1, 1), gpu::activation::relu);
  CHECK(gpu::detail::launches == launched); // counted when the chip runs it
  CHECK(value.get() == std::vector<float>{0});
  CHECK(gpu::detail::launches == launched + 1);
}

TEST_CASE("markers put copies before a distant device's ops, and ops before copies") {
  const test::distant_transfers transfers;
  auto dev = test::open_distant({.threads = 1});
  const auto from = dev->allocate(4, "from").value(), to = dev->allocate(4, "to").value();
  auto sent = gpu::host_buffer::allocate(8, "sent").value();
  const float values[2] = {-1, 5};
  std::memcpy(sent.data(), values, 8);
  gpu::copy_stream copies;
  gpu::marker first, activated, second;
  const gpu::tensor_ref x = gpu::view_2d(from.data(), gpu::dtype::f32, 1, 1);
  const gpu::tensor_ref y = gpu::view_2d(to.data(), gpu::dtype::f32, 1, 1);
  const test::device_array<std::int32_t> row(*dev, {0});
  // The op waits for the first copy; the second copy, to the op's input, waits for the op.
  REQUIRE(copies.begin_to_device(from.data(), sent.data(), 4).ok());
  first.record(copies);
  REQUIRE(first.device_follows(*dev).ok());
  gpu::gather_rows(*dev, x, row.data(), y);
  activated.record(*dev);
  REQUIRE(copies.follow(activated).ok());
  REQUIRE(copies.begin_to_device(from.data(), sent.data() + 4, 4).ok());
  second.record(copies);
  float seen[2] = {};
  REQUIRE(second.wait().ok());
  dev->download(seen, from.data(), 4);
  dev->download(seen + 1, to.data(), 4);
  CHECK(seen[0] == 5);
  CHECK(seen[1] == -1);
}

TEST_CASE("a kind of chip is opened by its name in device.kind, and an unknown one lists all") {
  const test::distant_kind kind;
  auto named = gpu::device::open({.kind = "distant", .threads = 1}).value();
  CHECK(named->info().kind == "distant");
  CHECK(named->info().backend.starts_with("Kokkos "));
  CHECK(!gpu::device_memory_is_host());
  CHECK(gpu::device::open({.kind = "auto", .threads = 1}).value()->info().kind == "distant");
  CHECK(gpu::device::open({.kind = "host", .threads = 1}).value()->memory_is_host());
  const auto refused = gpu::device::open({.kind = "tpu"});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.detail() == "device.kind must be auto, host or distant, got \"tpu\"");
}
