#include "tests/catch.hpp"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/device.hpp"
#include "gpu/machine.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;
using gpu::device;
using test::open_tested;

TEST_CASE("a device says what it is") {
  const auto dev = open_tested();
  const gpu::device_info& info = dev->info();
  CHECK((info.kind == "host" || info.kind == "cuda"));
  CHECK(!info.name.empty());
  CHECK(info.backend.starts_with("Kokkos "));
  CHECK(info.isa == gpu::host::name_of(gpu::host::widest_isa()));
  CHECK(info.threads == gpu::machine::usable_cores());
  CHECK(info.memory_bytes > 0);
}

TEST_CASE("an unknown or absent kind or instruction set is refused by name") {
  auto unknown = device::open({.kind = "tpu"});
  REQUIRE(!unknown.ok());
  CHECK(unknown.code() == gpu::errc::not_built);
  CHECK(unknown.detail().find("\"tpu\"") != std::string::npos);
  auto isa = device::open({.isa = "avx1024"});
  REQUIRE(!isa.ok());
  CHECK(isa.detail().find("\"avx1024\"") != std::string::npos);
}

TEST_CASE("a GPU that was asked for and is not there is an error, never the host instead") {
  if (gpu::detail::cuda_is_present()) return;
  auto refused = device::open({.kind = "cuda"});
  REQUIRE(!refused.ok());
  CHECK(refused.code() == gpu::errc::not_built);
  CHECK(device::open({.kind = "auto"}).value()->info().kind == "host");
}

TEST_CASE("the host can be chosen whatever GPUs there are") {
  CHECK(device::open({.kind = "host"}).value()->info().kind == "host");
}

TEST_CASE("memory is zero, aligned, counted and given back") {
  auto dev = open_tested({.memory_bytes = 32 << 20});
  CHECK(dev->memory_used() == 0);
  {
    auto a = dev->allocate(1000, "a").value();
    auto b = dev->allocate(9 << 20, "b").value();
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % 64 == 0);
    CHECK(dev->memory_used() == 1000 + (9 << 20));
    std::vector<unsigned char> bytes(1000, 7);
    dev->download(bytes.data(), a.data(), bytes.size());
    CHECK(bytes == std::vector<unsigned char>(1000, 0));
    gpu::buffer moved = std::move(a);
    CHECK(moved.bytes() == 1000);
    CHECK(dev->memory_used() == 1000 + (9 << 20));
    moved = gpu::buffer();
    CHECK(dev->memory_used() == 9 << 20);
  }
  CHECK(dev->memory_used() == 0);
  CHECK(dev->allocate(0, "empty").ok());
}

TEST_CASE("memory that is filled bit by bit begins with a huge page on the host") {
  auto dev = open_tested();
  for (const std::size_t bytes : {std::size_t{1000}, std::size_t{5} << 20}) {
    const auto memory = dev->allocate(bytes, "ring", gpu::page_hint::filled_gradually).value();
    if (dev->info().kind == "host")
      CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % (2 << 20) == 0);
    std::vector<unsigned char> last(1, 7);
    dev->download(last.data(), static_cast<const char*>(memory.data()) + bytes - 1, 1);
    CHECK(last[0] == 0);
  }
}

TEST_CASE("an allocation past the budget is refused with the numbers") {
  auto dev = open_tested({.memory_bytes = 1 << 20});
  auto held = dev->allocate(512 << 10, "held").value();
  auto refused = dev->allocate((512 << 10) + 1, "kv arena");
  REQUIRE(!refused.ok());
  CHECK(refused.code() == gpu::errc::out_of_memory);
  for (const char* part : {"kv arena", "524289 bytes", "512", "MiB"})
    CHECK(refused.detail().find(part) != std::string::npos);
  CHECK(!dev->allocate(~std::size_t{0}, "huge").ok());
  CHECK(dev->allocate(512 << 10, "the rest").ok());
}

TEST_CASE("the budget can be taken whole") {
  auto dev = open_tested({.memory_bytes = 1 << 20});
  const auto all = dev->allocate(1 << 20, "all");
  REQUIRE(all.ok());
  CHECK(!dev->allocate(1, "one more").ok());
}

TEST_CASE("the peak is the most memory that was in use at once") {
  auto dev = open_tested();
  {
    const auto a = dev->allocate(1000, "a").value();
    const auto b = dev->allocate(2000, "b").value();
    CHECK(dev->memory_peak() == 3000);
  }
  const auto c = dev->allocate(2500, "c").value();
  CHECK(dev->memory_peak() == 3000);
  const auto d = dev->allocate(600, "d").value();
  CHECK(dev->memory_peak() == 3100);
}

TEST_CASE("uploads and downloads keep every byte") {
  auto dev = open_tested();
  std::vector<unsigned char> sent(100003), back(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<unsigned char>(i * 31);
  auto memory = dev->allocate(sent.size(), "copy").value();
  dev->upload(memory.data(), sent.data(), sent.size());
  dev->download(back.data(), memory.data(), back.size());
  CHECK(sent == back);
}

TEST_CASE("copies that nobody waits for keep every byte, and all are counted") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  constexpr std::size_t bytes = 100003;
  auto sent = gpu::host_buffer::allocate(bytes, "sent").value();
  auto back = gpu::host_buffer::allocate(bytes, "back").value();
  for (std::size_t i = 0; i < bytes; ++i) {
    static_cast<unsigned char*>(sent.data())[i] = static_cast<unsigned char>(i * 31);
    static_cast<unsigned char*>(back.data())[i] = 0;
  }
  const auto memory = dev->allocate(bytes, "copy").value();
  const gpu::exchange_counts before = dev->exchanges();
  dev->enqueue_upload(memory.data(), sent.data(), bytes);
  dev->enqueue_download(back.data(), memory.data(), bytes);
  CHECK(dev->exchanges().waits == before.waits);
  dev->fence();
  CHECK(std::memcmp(sent.data(), back.data(), bytes) == 0);
  CHECK(dev->exchanges().uploads == before.uploads + 1);
  CHECK(dev->exchanges().downloads == before.downloads + 1);
  CHECK(dev->exchanges().waits == before.waits + 1);
  dev->upload(memory.data(), sent.data(), bytes);
  dev->download(back.data(), memory.data(), bytes);
  CHECK(dev->exchanges().uploads == before.uploads + 2);
  CHECK(dev->exchanges().downloads == before.downloads + 2);
  CHECK(dev->exchanges().waits == before.waits + 3);
}

TEST_CASE("memory for scratch is promised or refused") {
  auto dev = open_tested();
  REQUIRE(dev->reserve_scratch(1 << 16).ok());
  void* promised = dev->scratch(1 << 16);
  CHECK(promised != nullptr);
  REQUIRE(dev->reserve_scratch(100).ok());
  CHECK(dev->scratch(100) == promised);
  const auto refused = dev->reserve_scratch(std::size_t{1} << 60);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.code() == gpu::errc::out_of_memory);
}

TEST_CASE("a probe of the memory's speed reads every word") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  std::vector<std::uint64_t> words(std::size_t{3} << 18);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    sum += words[i] = i * 0x9e3779b97f4a7c15u;
  const auto memory = dev->allocate(words.size() * 8, "words").value();
  dev->upload(memory.data(), words.data(), words.size() * 8);
  CHECK(dev->ops().get<gpu::detail::probe_backend>().read(
            *dev, static_cast<const std::uint64_t*>(memory.data()),
            static_cast<std::int64_t>(words.size())) == sum);
}

TEST_CASE("scratch memory grows once and is kept") {
  auto dev = open_tested();
  void* small = dev->scratch(100);
  CHECK(dev->scratch(50) == small);
  void* large = dev->scratch(1 << 20);
  CHECK(reinterpret_cast<std::uintptr_t>(large) % 64 == 0);
  CHECK(dev->scratch(1 << 20) == large);
}

TEST_CASE("scratch memory counts as used, but not what it has grown out of") {
  auto dev = open_tested();
  dev->scratch(1 << 20);
  const std::int64_t small = dev->memory_used();
  CHECK(small >= 1 << 20);
  dev->scratch(4 << 20);
  const std::int64_t large = dev->memory_used();
  CHECK(large >= 4 << 20);
  CHECK(dev->memory_peak() == large);
  // Reserving what is already there does nothing; what was reserved is not allocated again.
  REQUIRE(dev->reserve_scratch(4 << 20).ok());
  CHECK(dev->memory_used() == large);
  REQUIRE(dev->reserve_scratch(9 << 20).ok());
  CHECK(dev->memory_used() == 9 << 20);
  dev->scratch(9 << 20);
  CHECK(dev->memory_used() == 9 << 20);
}

TEST_CASE("a device may be opened again, also on another thread") {
  { auto first = open_tested(); }
  std::thread([] {
    auto second = open_tested();
    CHECK(second->allocate(64, "x").ok());
    second->fence();
  }).join();
}
