// private_file: files that only their owner may read, and the errors for clients when the disk does
// not accept a file. Any thread may call the functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "net/api_error.hpp"

namespace twill::net {

/// Owns an open file and closes it; -1 if the file could not be opened.
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

/// Creates an empty file that only its owner may read, whatever the umask is. Fails, with errno
/// set, if the file exists already.
descriptor create_private(const std::filesystem::path& path);
/// open_to_write() and open_to_read() open an existing regular file. For anything else they return
/// -1, with errno set.
descriptor open_to_write(const std::filesystem::path& path);
descriptor open_to_read(const std::filesystem::path& path);
/// Returns the size of an open file in bytes.
std::int64_t size_of(const descriptor& file);
/// Writes all of `bytes` at `offset`. Returns false, with errno set, if not everything was written.
bool write_at(const descriptor& to, std::string_view bytes, std::int64_t offset);
/// Makes `bytes` the whole content of the file. Returns false, with errno set, on failure.
bool write_whole(const descriptor& to, std::string_view bytes);

/// Returns whether an errno of open() means that the process or the machine has no free descriptor.
bool is_out_of_descriptors(int error);
/// The error for a client when no descriptor is free.
api_error no_descriptor_left();
/// Converts the errno of a failed open or write to an error for a client.
api_error describe_failure(int error);

} // namespace twill::net
