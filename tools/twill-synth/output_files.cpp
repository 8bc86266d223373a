#include "tools/twill-synth/output_files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace twill::synth {
namespace fs = std::filesystem;

output_file::output_file(output_file&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)),
      position_(other.position_) {}

output_file& output_file::operator=(output_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(position_, other.position_);
  return *this;
}

output_file::~output_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

failure output_file::failed(const char* what) const {
  return {errc::file_unwritable, path_ + ": " + what + ": " + std::strerror(errno)};
}

result<output_file> output_file::create(const std::string& path) {
  output_file file;
  file.path_ = path;
  file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.descriptor_ < 0) return file.failed("cannot be created");
  return file;
}

result<nothing> output_file::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("cannot be written");
    position_ += n;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return nothing{};
}

result<nothing> output_file::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

result<nothing> output_file::patch(std::int64_t offset, std::string_view bytes) {
  const ssize_t n = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
  if (n != static_cast<ssize_t>(bytes.size())) return failed("cannot be written");
  return nothing{};
}

result<nothing> output_file::close() {
  // Some file systems report a full disk only on close().
  if (::close(std::exchange(descriptor_, -1)) != 0) return failed("cannot be written");
  return nothing{};
}

output_folder::output_folder(output_folder&& other) noexcept
    : path_(std::move(other.path_)), files_(std::move(other.files_)),
      made_(std::exchange(other.made_, false)), kept_(std::exchange(other.kept_, true)) {}

output_folder::~output_folder() {
  if (kept_) return;
  std::error_code ignored;
  for (const std::string& file : files_)
    fs::remove(file, ignored);
  if (made_) fs::remove(path_, ignored);
}

result<output_folder> output_folder::create(const std::string& path) {
  output_folder folder;
  std::error_code error;
  folder.path_ = path;
  folder.made_ = fs::create_directory(path, error);
  if (error)
    return failure{errc::file_unwritable, path + ": cannot be created: " + error.message()};
  const bool empty = fs::is_empty(path, error);
  if (error) return failure{errc::file_unwritable, path + ": cannot be read: " + error.message()};
  if (!empty) return failure{errc::file_unwritable, path + ": must be a new or an empty folder"};
  return folder;
}

result<output_folder> output_folder::around(const std::string& file) {
  output_folder folder;
  const fs::path parent = fs::path(file).parent_path();
  folder.path_ = parent.empty() ? "." : parent.string();
  return folder;
}

result<output_file> output_folder::add(const std::string& name) {
  const std::string path = (fs::path(path_) / name).string();
  auto file = output_file::create(path);
  if (file.ok()) files_.push_back(path);
  return file;
}

result<nothing> output_folder::add_whole(const std::string& name, std::string_view bytes) {
  auto file = add(name);
  if (!file.ok()) return file.error();
  if (auto written = file.value().write(bytes); !written.ok()) return written;
  return file.value().close();
}

std::int64_t output_folder::free_bytes() const {
  std::error_code error;
  const fs::space_info space = fs::space(path_, error);
  return error ? INT64_MAX : static_cast<std::int64_t>(space.available);
}

} // namespace twill::synth
