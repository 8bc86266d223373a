// private_file: files that only their owner may read, and what to tell a client when the disk does
// not take one. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "net/api_error.hpp"

namespace twill::net {

/// An open file, closed with the object; -1 when it could not be opened.
class descriptor {
public:
  explicit descriptor(int file = -1) : file_(file) {}
  descriptor(descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~descriptor();
  int get() const { return file_; }

private:
  int file_;
};

/// An empty file that only its owner may read, whatever the umask; with errno where there is one.
descriptor create_private(const std::filesystem::path& path);
/// A regular file that exists, to be written, or to be read; otherwise none, with errno.
descriptor open_to_write(const std::filesystem::path& path);
descriptor open_to_read(const std::filesystem::path& path);
/// The bytes that an open file has.
std::int64_t size_of(const descriptor& file);
/// Writes all of it at `offset`, or not all and false, with errno.
bool write_at(const descriptor& to, std::string_view bytes, std::int64_t offset);
/// Writes it to the beginning and cuts off what is behind it; or false, with errno.
bool write_whole(const descriptor& to, std::string_view bytes);

/// Whether an error of open() says that the process, or the machine, has no descriptor left.
bool is_out_of_descriptors(int error);
/// What to tell a client then.
api_error no_descriptor_left();
/// Why a file could not be opened or written, by errno.
api_error describe_failure(int error);

} // namespace twill::net
