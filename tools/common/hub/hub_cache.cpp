#include "tools/common/hub/hub_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "config/base/read_file.hpp"
#include "tools/common/endpoint.hpp"

namespace twill::tools::hub {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& repository) {
  std::string name = "models--";
  for (const char c : repository)
    if (c == '/')
      name += "--";
    else
      name += c;
  return name;
}

std::int64_t size_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return -1;
  const auto bytes = fs::file_size(path, error);
  return error ? -1 : static_cast<std::int64_t>(bytes);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw client_error("cannot write to " + folder.string() + " (" + error.message() +
                       "): set HF_HOME to a folder that this user may write");
}

} // namespace

hub_cache::hub_cache(fs::path root, const std::string& repository)
    : root_(std::move(root)), folder_(folder_of(repository)) {}

fs::path hub_cache::blob(const repo_file& file) const {
  return root_ / folder_ / "blobs" / file.etag();
}

fs::path hub_cache::incomplete(const repo_file& file) const {
  return root_ / folder_ / "blobs" / (file.etag() + ".incomplete");
}

fs::path hub_cache::snapshot(const std::string& commit) const {
  return root_ / folder_ / "snapshots" / commit;
}

fs::path hub_cache::entry(const std::string& commit, const repo_file& file) const {
  return snapshot(commit) / file.path;
}

bool hub_cache::has(const std::string& commit, const repo_file& file) const {
  return size_of(entry(commit, file)) == file.bytes;
}

bool hub_cache::has_blob(const repo_file& file) const {
  return size_of(blob(file)) == file.bytes;
}

std::int64_t hub_cache::bytes_begun(const repo_file& file) const {
  return std::max<std::int64_t>(0, size_of(incomplete(file)));
}

void hub_cache::prepare(const std::string& commit, const repo_file& file) const {
  make_folder(blob(file).parent_path());
  make_folder(entry(commit, file).parent_path());
  make_folder(lock_file(file).parent_path());
}

void hub_cache::link(const std::string& commit, const repo_file& file) const {
  const auto place = entry(commit, file);
  make_folder(place.parent_path());
  const auto target = blob(file).lexically_relative(place.parent_path());
  // The new link is renamed into place, so that it replaces an unusable link (whose file in blobs/
  // is missing or has another size) in one step. Other programs may be reading this folder, and
  // none of them must ever find the name missing.
  const auto beside = place.string() + "." + std::to_string(::getpid()) + ".tmp";
  std::error_code error, ignored;
  fs::remove(beside, ignored);
  fs::create_symlink(target, beside, error);
  if (!error) fs::rename(beside, place, error);
  if (!error || has(commit, file)) return;
  fs::remove(beside, ignored);
  // On a file system without symbolic links the snapshot holds the file itself, as in the
  // huggingface_hub library.
  fs::rename(blob(file), place, error);
  if (error)
    throw client_error("cannot put " + file.path + " into " + place.string() + ": " +
                       error.message());
}

void hub_cache::note_revision(const std::string& revision, const std::string& commit) const {
  if (revision == commit) return;
  const auto place = root_ / folder_ / "refs" / revision;
  make_folder(place.parent_path());
  if (commit_of(revision) == commit) return;
  const auto whole = place.string() + "." + std::to_string(::getpid()) + ".tmp";
  const bool written = (std::ofstream(whole, std::ios::binary) << commit).flush().good();
  std::error_code error;
  if (written) fs::rename(whole, place, error);
  if (written && !error) return;
  std::error_code ignored;
  fs::remove(whole, ignored);
  throw client_error("cannot write " + place.string() + ": " +
                     (error ? error.message() : "the disk may be full"));
}

std::optional<std::string> hub_cache::commit_of(const std::string& revision) const {
  if (is_hex(revision, 40)) return revision;
  constexpr std::int64_t most_bytes = 200;
  const auto text = read_file((root_ / folder_ / "refs" / revision).string(), most_bytes);
  if (!text.ok()) return std::nullopt;
  const auto commit = text.value().substr(0, text.value().find_first_of("\r\n \t"));
  return is_hex(commit, 40) ? std::optional(commit) : std::nullopt;
}

repo_listing hub_cache::list(const std::string& commit) const {
  repo_listing listing{commit, {}};
  const auto folder = snapshot(commit);
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const auto bytes = size_of(at->path());
    if (bytes < 0) continue;
    const auto path = at->path().lexically_relative(folder).generic_string();
    if (is_safe_path(path)) listing.files.push_back({path, bytes, {}, {}});
  }
  return listing;
}

fs::path hub_cache::lock_file(const repo_file& file) const {
  return root_ / ".locks" / folder_ / (file.etag() + ".lock");
}

std::vector<cached_model> cached_models(const fs::path& root) {
  const std::string_view prefix = "models--";
  std::vector<cached_model> models;
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    auto name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    name.erase(0, prefix.size());
    if (const auto dashes = name.find("--"); dashes != name.npos) name.replace(dashes, 2, "/");
    std::int64_t bytes = 0;
    std::error_code unreadable;
    for (fs::directory_iterator blob(at->path() / "blobs", unreadable); !unreadable && blob != end;
         blob.increment(unreadable))
      bytes += std::max<std::int64_t>(0, size_of(blob->path()));
    if (bytes > 0) models.push_back({std::move(name), bytes});
  }
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a.repository < b.repository; });
  return models;
}

bool remove_cached(const fs::path& root, const std::string& repository) {
  const auto models = cached_models(root);
  // Only listed models are removed, so no repository name can address a folder outside the cache.
  const bool known = std::any_of(models.begin(), models.end(),
                                 [&](const auto& one) { return one.repository == repository; });
  if (!known) return false;
  std::error_code error;
  fs::remove_all(root / ".locks" / folder_of(repository), error);
  fs::remove_all(root / folder_of(repository), error);
  if (error)
    throw client_error("cannot remove " + (root / folder_of(repository)).string() + ": " +
                       error.message());
  return true;
}

file_lock::file_lock(const fs::path& path, const std::function<void()>& waiting)
    : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (fd_ < 0) throw client_error("cannot write " + path.string() + ": " + std::strerror(errno));
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    // Some file systems do not support locks. Going on without one is safe, because every blob is
    // verified by its hash.
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    try {
      waiting();
    } catch (...) {
      ::close(fd_);
      throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

file_lock::~file_lock() {
  ::close(fd_);
}

} // namespace twill::tools::hub
