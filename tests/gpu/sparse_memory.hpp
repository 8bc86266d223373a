// sparse_memory: memory that is reserved but not committed, for sizes that no machine has. The
// operating system must overcommit memory.
#pragma once

#include "tests/catch.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace twill::test {

/// Zero-filled memory, aligned to a page, whose pages are committed when they are touched.
class sparse_memory {
public:
  explicit sparse_memory(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(bytes)),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(data_ != MAP_FAILED);
  }
  sparse_memory(const sparse_memory&) = delete;
  sparse_memory& operator=(const sparse_memory&) = delete;
  ~sparse_memory() { munmap(data_, bytes_); }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

private:
  std::size_t bytes_;
  void* data_;
};

} // namespace twill::test
