// Markers on several devices in one process.
#include "gpu/copy_stream.hpp"

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "gpu/detail/transfer_backend.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;

namespace {

std::vector<std::pair<char, const gpu::detail::space*>> calls; ///< r: record, f: device_follows

gpu::result<nothing> record(const gpu::detail::space& on, void*) {
  calls.emplace_back('r', &on);
  return nothing{};
}
gpu::result<nothing> device_follows(const gpu::detail::space& on, void*) {
  calls.emplace_back('f', &on);
  return nothing{};
}

} // namespace

TEST_CASE("a marker is recorded and followed on the device that it is given") {
  const auto a = gpu::device::open({.kind = "host", .threads = 1}).value();
  const auto b = gpu::device::open({.kind = "host", .threads = 1}).value();
  const gpu::detail::transfer_backend& usual = gpu::detail::transfers();
  gpu::detail::transfer_backend watched = usual;
  watched.record = record;
  watched.device_follows = device_follows;
  gpu::detail::use_transfers(watched);
  calls.clear();
  {
    gpu::marker point;
    point.record(*a);
    CHECK(point.device_follows(*b).ok());
    point.record(*b);
  }
  gpu::detail::use_transfers(usual);
  const std::vector<std::pair<char, const gpu::detail::space*>> want{
      {'r', &a->where()}, {'f', &b->where()}, {'r', &b->where()}};
  CHECK(calls == want);
}

TEST_CASE("a marker waits for its own device while others are opened and closed") {
  constexpr std::size_t bytes = std::size_t{64} << 20; // whose copies take a GPU milliseconds
  const auto a = test::open_tested(), b = test::open_tested();
  const auto memory = a->allocate(bytes, "marked").value();
  auto sent = gpu::host_buffer::allocate(bytes, "sent").value();
  auto back = gpu::host_buffer::allocate(bytes, "back").value();
  gpu::marker copied;
  for (const unsigned char value : {1, 2, 3}) {
    std::memset(sent.data(), value, bytes);
    a->enqueue_upload(memory.data(), sent.data(), bytes);
    a->enqueue_download(back.data(), memory.data(), bytes);
    { const auto passing = test::open_tested(); }
    copied.record(*a);
    REQUIRE(copied.wait().ok());
    CHECK(static_cast<int>(back.data()[bytes - 1]) == value);
  }
}
