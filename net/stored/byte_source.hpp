// byte_source: a sequence of bytes of known length that can be read at any offset. The bytes come
// from a file or, in tests, from memory. One thread at a time may use a source.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "net/stored/file_ops.hpp"

namespace twill::net {

class byte_source {
public:
  explicit byte_source(std::int64_t bytes) : bytes_(bytes) {}
  virtual ~byte_source() = default;
  std::int64_t bytes() const { return bytes_; }
  /// Reads the bytes [at, at + n) into `to`. The range must lie inside the source.
  virtual std::error_code read(char* to, std::size_t n, std::int64_t at) = 0;

private:
  std::int64_t bytes_;
};

class file_source final : public byte_source {
public:
  /// `bytes` is the size that the file had when it was checked. A read fails with bad_message if
  /// the file has become shorter since then.
  file_source(file_ops& ops, int file, std::int64_t bytes)
      : byte_source(bytes), ops_(ops), file_(file) {}
  std::error_code read(char* to, std::size_t n, std::int64_t at) override;

private:
  file_ops& ops_;
  int file_;
};

class memory_source final : public byte_source {
public:
  explicit memory_source(std::string_view whole)
      : byte_source(static_cast<std::int64_t>(whole.size())), whole_(whole) {}
  std::error_code read(char* to, std::size_t n, std::int64_t at) override {
    std::copy_n(whole_.data() + at, n, to);
    return {};
  }

private:
  std::string_view whole_;
};

/// Writes all of `bytes` at offset `at`, repeating the system call if it writes only a part.
std::error_code write_all(file_ops& ops, int file, std::string_view bytes, std::int64_t at);

/// The error code for the current value of errno.
std::error_code last_error();

} // namespace twill::net
