// hub_cache: one repository's files in the cache of the huggingface_hub library, so that programs
// of Python find what twill fetched, and twill what they fetched:
//
//   models--ORG--NAME/blobs/ETAG             contents, by their hash
//   models--ORG--NAME/snapshots/COMMIT/PATH  links to them
//   models--ORG--NAME/refs/REVISION          the commit that a branch had
//   .locks/models--ORG--NAME/ETAG.lock       held while a content is fetched
//
// Any number of processes may use one cache at once: contents appear whole. Throws client_error.
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

  /// Whether the snapshot has the file, with as many bytes as it must have.
  bool has(const std::string& commit, const repo_file& file) const;
  /// Whether the content is there, under whatever name.
  bool has_blob(const repo_file& file) const;
  /// Bytes that an earlier try has left.
  std::int64_t bytes_begun(const repo_file& file) const;

  /// Makes the folders for a file's content and for its place in the snapshot.
  void prepare(const std::string& commit, const repo_file& file) const;
  /// Puts the content into the snapshot.
  void link(const std::string& commit, const repo_file& file) const;
  /// Notes which commit a branch or tag has.
  void note_revision(const std::string& revision, const std::string& commit) const;
  /// The commit that was noted; a revision that is a commit stands for itself.
  std::optional<std::string> commit_of(const std::string& revision) const;
  /// The files of a snapshot, with their sizes and without hashes.
  repo_listing list(const std::string& commit) const;

  /// The lock of a content.
  std::filesystem::path lock_file(const repo_file& file) const;

private:
  std::filesystem::path root_;
  std::string folder_; ///< "models--ORG--NAME"
};

struct cached_model {
  std::string repository;
  std::int64_t bytes = 0; ///< of its contents, those that are not whole included
};

/// The models of the cache that have contents, sorted by name.
std::vector<cached_model> cached_models(const std::filesystem::path& root);
/// Removes all of a repository's files; false when the cache has none.
bool remove_cached(const std::filesystem::path& root, const std::string& repository);

/// Holds the lock of a file while it lives.
class file_lock {
public:
  /// Waits while another process holds it; `waiting` is called a few times in a second, and may
  /// throw.
  file_lock(const std::filesystem::path& path, const std::function<void()>& waiting);
  ~file_lock();
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;

private:
  int fd_ = -1;
};

} // namespace twill::tools::hub
