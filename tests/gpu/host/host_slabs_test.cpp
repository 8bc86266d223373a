// host_slabs is the memory of weights on a host. settle() moves it to huge pages, either before it
// returns or slowly in the background while tokens are streamed.
#include "gpu/detail/host_slabs.hpp"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "gpu/detail/huge_pages.hpp"
#include "tests/catch.hpp"

using twill::gpu::detail::host_slabs;
using twill::gpu::detail::huge_page_bytes;
using namespace std::chrono_literals;

namespace {

/// Bytes on huge pages in all mappings that overlap this memory.
std::size_t huge_bytes(const char* memory, std::size_t bytes) {
  std::ifstream in("/proc/self/smaps");
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  std::size_t sum = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    std::uintptr_t begin = 0, end = 0;
    std::size_t kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin < first + bytes && end > first;
    else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %zu kB", &kib) == 1)
      sum += kib * 1024;
  }
  return sum;
}

/// Whether this machine gives huge pages to memory that asks for them from the start.
bool has_huge_pages() {
  auto* memory = static_cast<char*>(twill::gpu::detail::map_huge_pages(huge_page_bytes));
  std::memset(memory, 1, huge_page_bytes);
  return huge_bytes(memory, huge_page_bytes) > 0;
}

double seconds_of(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Processor time of all threads but this one.
double seconds_of_others() {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

struct filled {
  explicit filled(host_slabs& from, std::size_t n_pages)
      : bytes(n_pages * huge_page_bytes), data(static_cast<char*>(from.take(bytes))) {
    for (std::size_t i = 0; i < bytes; ++i)
      data[i] = static_cast<char>(i * 7 + i / 4096);
  }
  bool is_whole() const {
    for (std::size_t i = 0; i < bytes; ++i)
      if (data[i] != static_cast<char>(i * 7 + i / 4096)) return false;
    return true;
  }
  std::size_t bytes;
  char* data;
};

} // namespace

TEST_CASE("memory that moves quickly is on huge pages when settle() returns") {
  host_slabs slabs;
  const filled memory(slabs, 20);
  const auto before = huge_bytes(memory.data, memory.bytes);
  slabs.settle(30s);
  CHECK(memory.is_whole());
  if (!has_huge_pages()) return;
  CHECK(before == 0);
  CHECK(huge_bytes(memory.data, memory.bytes) >= memory.bytes * 9 / 10);
}

TEST_CASE("memory that moves slowly moves afterwards, in a small share of a core's time") {
  host_slabs slabs;
  const filled memory(slabs, 40);
  const auto began = std::chrono::steady_clock::now();
  const double worked = seconds_of_others();
  slabs.settle(0s);
  CHECK(std::chrono::steady_clock::now() - began < 10s); // far below the time of the move
  if (!has_huge_pages()) return;
  const auto wanted = memory.bytes * 9 / 10;
  for (int i = 0; i < 1000 && huge_bytes(memory.data, memory.bytes) < wanted; ++i)
    std::this_thread::sleep_for(20ms);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  CHECK(huge_bytes(memory.data, memory.bytes) >= wanted);
  // The move may use a tenth of a core. This thread's own polling is not counted.
  CHECK(seconds_of_others() - worked < 0.3 * took.count());
  CHECK(memory.is_whole());
}

TEST_CASE("memory can be given back, and taken again, while it moves") {
  for (int round = 0; round < 3; ++round) {
    host_slabs slabs;
    const filled kept(slabs, 6);
    const filled other(slabs, 6);
    slabs.settle(0s);
    slabs.settle(0s);
    CHECK(kept.is_whole());
    CHECK(slabs.give_back(other.data));
    CHECK_FALSE(slabs.give_back(&slabs));
    const filled again(slabs, 6);
    CHECK(kept.is_whole());
  }
}
