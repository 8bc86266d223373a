#include "tools/common/hub/download.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "net/digest.hpp"

namespace twill::tools::hub {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, int why) {
  if (why == ENOSPC || why == EDQUOT)
    throw client_error("the disk of " + path.parent_path().string() +
                       " is full: free some room, or set HF_HOME to a folder on another disk; what "
                       "was fetched is kept, and the next try goes on from there");
  throw client_error("cannot write " + path.string() + ": " + std::strerror(why));
}

class written_file {
public:
  explicit written_file(const fs::path& path)
      : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (fd_ < 0) cannot_write(path, errno);
  }
  ~written_file() { ::close(fd_); }
  written_file(const written_file&) = delete;
  written_file& operator=(const written_file&) = delete;

  std::int64_t bytes() const {
    struct stat found {};
    return ::fstat(fd_, &found) == 0 ? found.st_size : 0;
  }
  void cut_to(std::int64_t bytes) {
    if (::ftruncate(fd_, bytes) != 0) cannot_write(path_, errno);
  }
  /// Writes at a given offset, so that two processes that write the same content cannot corrupt it.
  void write(std::string_view bytes, std::int64_t at) {
    while (!bytes.empty()) {
      const auto n = ::pwrite(fd_, bytes.data(), bytes.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) cannot_write(path_, n < 0 ? errno : ENOSPC);
      bytes.remove_prefix(static_cast<std::size_t>(n));
      at += n;
    }
  }
  /// Reads at most `most` bytes at offset `at`; returns an empty text at the end of the file.
  std::string_view read(char* to, std::size_t most, std::int64_t at) {
    const auto n = ::pread(fd_, to, most, at);
    return {to, n < 0 ? 0 : static_cast<std::size_t>(n)};
  }
  void settle() {
    if (::fsync(fd_) != 0) cannot_write(path_, errno);
  }

private:
  fs::path path_;
  int fd_;
};

/// Computes the hash by which the hub identifies a file: SHA-256 for files in Git LFS, otherwise
/// SHA-1 of the git blob.
class content_hash {
public:
  explicit content_hash(const repo_file& file)
      : digest_(file.sha256.empty() ? net::digest_kind::sha1 : net::digest_kind::sha256) {
    if (file.sha256.empty())
      digest_.add("blob " + std::to_string(file.bytes) + std::string(1, '\0'));
  }
  void add(std::string_view bytes) { digest_.add(bytes); }
  bool is_of(const repo_file& file) { return digest_.hex() == file.etag(); }

private:
  net::digest digest_;
};

class download_operation {
public:
  download_operation(hub_client& client, const hub_cache& cache, const model_reference& named,
                     const std::string& commit, const repo_file& file,
                     const download_events& events)
      : client_(client), cache_(cache), named_(named), commit_(commit), file_(file),
        events_(events) {}

  void run() {
    const auto begun = cache_.bytes_begun(file_);
    if (fetch()) return;
    // The bytes of an earlier attempt may come from a faulty disk or from another program.
    if (begun > 0) {
      events_.say(file_.path + ": what an earlier try left is damaged; it is fetched anew");
      events_.fetched(begun - file_.bytes);
      if (fetch()) return;
    }
    throw client_error(named_.text() + ": " + file_.path + " must have the hash " + file_.etag() +
                       ", what came has another and was not kept; try again, and if it stays so, "
                       "something between this machine and the hub changes files");
  }

private:
  /// Returns false, and removes the incomplete file, when the content's hash is wrong.
  bool fetch() {
    const auto path = cache_.incomplete(file_);
    {
      written_file out(path);
      if (out.bytes() > file_.bytes) out.cut_to(0);
      content_hash hash(file_);
      std::int64_t at = read_begun(out, hash);
      if (at < file_.bytes)
        client_.read(named_, commit_, file_, at, file_.bytes, [&](std::string_view bytes) {
          out.write(bytes, at);
          hash.add(bytes);
          at += static_cast<std::int64_t>(bytes.size());
          events_.fetched(static_cast<std::int64_t>(bytes.size()));
        });
      if (!hash.is_of(file_)) {
        fs::remove(path);
        return false;
      }
      out.settle();
    }
    std::error_code error;
    fs::rename(path, cache_.blob(file_), error);
    // On file systems where locks have no effect, another process may have moved the file first.
    if (error && !cache_.has_blob(file_))
      throw client_error("cannot move a file to " + cache_.blob(file_).string() + ": " +
                         error.message());
    return true;
  }

  /// Hashes the bytes that an earlier attempt left, and returns how many they are.
  std::int64_t read_begun(written_file& out, content_hash& hash) {
    constexpr std::size_t piece = 1 << 20;
    const auto buffer = std::make_unique<char[]>(piece);
    std::int64_t at = 0;
    for (;;) {
      if (events_.stopped && events_.stopped()) throw stopped_error();
      const auto bytes = out.read(buffer.get(), piece, at);
      if (bytes.empty()) return at;
      hash.add(bytes);
      at += static_cast<std::int64_t>(bytes.size());
    }
  }

  hub_client& client_;
  const hub_cache& cache_;
  const model_reference& named_;
  const std::string& commit_;
  const repo_file& file_;
  const download_events& events_;
};

} // namespace

void download(hub_client& client, const hub_cache& cache, const model_reference& named,
              const std::string& commit, const repo_file& file, const download_events& events) {
  if (cache.has(commit, file)) return;
  cache.prepare(commit, file);
  bool reported = false;
  const file_lock lock(cache.lock_file(file), [&] {
    if (events.stopped && events.stopped()) throw stopped_error();
    if (!std::exchange(reported, true))
      events.say("another program fetches " + file.path + "; waiting for it");
  });
  if (cache.has(commit, file)) return; // the process that held the lock has fetched it
  if (!cache.has_blob(file)) download_operation(client, cache, named, commit, file, events).run();
  cache.link(commit, file);
}

void fetch_head(hub_client& client, const model_reference& named, const std::string& commit,
                const repo_file& file, const fs::path& to,
                const std::function<std::int64_t(std::string_view head)>& enough) {
  std::string head;
  for (;;) {
    const auto wanted = std::min(enough(head), file.bytes);
    const auto begin = static_cast<std::int64_t>(head.size());
    if (wanted <= begin) break;
    client.read(named, commit, file, begin, wanted, [&](std::string_view bytes) { head += bytes; });
  }
  written_file out(to);
  out.write(head, 0);
  out.cut_to(file.bytes);
}

} // namespace twill::tools::hub
