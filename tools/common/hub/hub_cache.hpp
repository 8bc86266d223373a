// hub_cache: the files of one repository in the cache of Python's huggingface_hub library. twill
// and Python programs share this cache, so each finds the files that the other has fetched. Layout:
//
//   models--ORG--NAME/blobs/ETAG             file contents, named by hash
//   models--ORG--NAME/snapshots/COMMIT/PATH  symbolic links to blobs
//   models--ORG--NAME/refs/REVISION          the last known commit of a branch or tag
//   .locks/models--ORG--NAME/ETAG.lock       locked while a blob is being fetched
//
// Any number of processes may use one cache at the same time, because a blob gets its final name
// only once it is complete. All functions throw client_error.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/hub/listing.hpp"
#include "tools/common/hub/reference.hpp"

namespace twill::tools::hub {

class hub_cache {
public:
  hub_cache(std::filesystem::path root, const std::string& repository);

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path blob(const repo_file& file) const;
  std::filesystem::path incomplete(const repo_file& file) const;
  std::filesystem::path snapshot(const std::string& commit) const;
  std::filesystem::path entry(const std::string& commit, const repo_file& file) const;

  /// Whether the snapshot of `commit` has the file, with the expected number of bytes.
  bool has(const std::string& commit, const repo_file& file) const;
  /// Whether the cache has the blob of the file, even if the snapshot does not link to it.
  bool has_blob(const repo_file& file) const;
  /// How many bytes of the file an unfinished download has left in the cache.
  std::int64_t bytes_begun(const repo_file& file) const;

  /// Makes the folders that will hold the file's blob, its lock file and its link in the snapshot.
  void prepare(const std::string& commit, const repo_file& file) const;
  /// Links the file's path in the snapshot to its blob.
  void link(const std::string& commit, const repo_file& file) const;
  /// Records the commit to which a branch or tag currently refers.
  void note_revision(const std::string& revision, const std::string& commit) const;
  /// Returns the recorded commit of a branch or tag. A revision that is itself a commit is returned
  /// unchanged.
  std::optional<std::string> commit_of(const std::string& revision) const;
  /// The files of a snapshot with their sizes; their hashes are left empty.
  repo_listing list(const std::string& commit) const;

  /// The path of the lock file that is locked while the file's blob is fetched.
  std::filesystem::path lock_file(const repo_file& file) const;

private:
  std::filesystem::path root_;
  std::string folder_; ///< "models--ORG--NAME"
};

struct cached_model {
  std::string repository;
  std::int64_t bytes = 0; ///< total size of its blobs, including incomplete ones
};

/// The models that have blobs in the cache, sorted by name.
std::vector<cached_model> cached_models(const std::filesystem::path& root);
/// Removes all files of a repository. Returns false when the cache has none.
bool remove_cached(const std::filesystem::path& root, const std::string& repository);

/// Holds the lock of a file from construction to destruction.
class file_lock {
public:
  /// Waits while another process holds the lock. Meanwhile `waiting` is called a few times per
  /// second; it may throw to end the wait.
  file_lock(const std::filesystem::path& path, const std::function<void()>& waiting);
  ~file_lock();
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;

private:
  int fd_ = -1;
};

} // namespace twill::tools::hub
