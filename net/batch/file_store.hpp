// file_store: the files that clients upload and that batches write, in one folder, limited in bytes
// and number, in total and for each tenant.
//
// Thread safety: any thread may call all functions. One mutex guards the store and is not held
// while bytes are written. A file belongs to one tenant, and no other tenant can find it. Without a
// configured folder, a private temporary folder is created with the first file and removed with the
// store. A configured folder is read at the start and kept. The name of a file in the folder is its
// id ("file-..."), and beside it there is a description "file-....json" with the name that the
// client gave, the purpose and the tenant. A store locks its folder; so the next store can
// distinguish leftovers of a killed daemon (temporary folders, and files that were never published)
// from files in use, and removes the leftovers. Files that a batch will continue are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/ledger.hpp"
#include "net/api_error.hpp"
#include "net/batch/private_file.hpp"

namespace twill::net {

struct stored_file {
  std::string id;
  std::string tenant;
  std::string filename;
  std::string purpose; ///< "batch", "batch_output"
  std::int64_t bytes = 0;
  std::int64_t created_unix_s = 0;
};

/// The error for a client whose id names no file of its tenant on this server.
api_error no_such_file(const std::string& id, const std::string& server_name);

/// Returns the part `share` of a number of things `whole`, but at least 1.
inline std::size_t share_of(std::size_t whole, double share) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(whole) * share));
}

class file_store {
public:
  /// A callback that returns the ids of files that were never published to clients and that batches
  /// will continue, or nothing if the ids are not known; then no file may be removed.
  using under_way = std::function<std::optional<std::set<std::string>>()>;

  /// `share` returns the part of the bytes and files that one tenant may hold now; without it, a
  /// tenant may hold all of them. The ids of files contain `server_name`. `find_under_way` is
  /// called only by the constructor, once, and only if the folder is configured and this store has
  /// locked it. Throws std::runtime_error if a configured folder cannot be used.
  file_store(std::string folder, std::int64_t max_bytes, std::function<double()> share = {},
             std::string server_name = {}, const under_way& find_under_way = {});
  ~file_store();
  file_store(const file_store&) = delete;
  file_store& operator=(const file_store&) = delete;

  /// A file that is being written. Clients can find the file only after publish(). If the file is
  /// not published, the destructor removes it, unless keep() was called and the file has bytes. The
  /// disk space of the file's description (ID.json) is reserved first, so that the file can be
  /// published even if the disk is full. One thread at a time may use a writer; the store must
  /// outlive it.
  class writer {
  public:
    writer(file_store& store, std::string id, std::string tenant, std::filesystem::path path);
    /// Opens an existing file for further writing, as if keep() had been called.
    writer(file_store& store, std::string id, std::string tenant, std::filesystem::path path,
           descriptor reopened);
    ~writer();
    writer(const writer&) = delete;
    writer& operator=(const writer&) = delete;

    /// Fails with errc::storage_full if the disk is full, or if the store would exceed its limit of
    /// bytes or the tenant its share of that limit. Fails with errc::busy if the process has no
    /// free descriptor. A failed call leaves the file unchanged. The file can still be published,
    /// unless the file or its description could not be opened.
    result<nothing> append(std::string_view bytes);
    /// Keeps the file for reopen() when the writer is destroyed.
    void keep() { kept_ = true; }
    const std::string& id() const { return id_; }
    std::int64_t bytes() const { return bytes_; }
    /// Opens the written file for reading. Returns nullptr, with errno set, if that fails.
    std::unique_ptr<std::ifstream> read() const;
    /// Cuts the file off after its first `bytes` bytes; the file must have at least that many.
    result<nothing> cut(std::int64_t bytes);
    /// Publishes the file. The tenant of `description` is replaced by the one that was given to
    /// create().
    result<stored_file> publish(stored_file description);

  private:
    file_store& store_;
    std::string id_, tenant_;
    std::filesystem::path path_;
    descriptor out_, description_;
    std::optional<api_error> fault_; ///< set if the file or its description could not be opened
    std::int64_t bytes_ = 0;
    bool kept_ = false;
    bool published_ = false;
  };

  /// Fails with errc::batch_limit if there are too many files, in total or of this tenant.
  result<std::unique_ptr<writer>> create(const std::string& tenant);
  /// Opens a file that an earlier store has left, to write more to it. If the file was published,
  /// clients find it only after it is published again. The bytes of the file count even if they
  /// exceed the limits. Fails with errc::unknown_file if this tenant has no such output file, and
  /// otherwise in the same cases as append().
  result<std::unique_ptr<writer>> reopen(const std::string& id, const std::string& tenant);
  /// Stores a whole file. Only `tenant`, `filename` and `purpose` of the description are used.
  result<stored_file> put(stored_file description, std::string_view bytes);

  std::optional<stored_file> find(const std::string& id, const std::string& tenant) const;
  /// Lists the tenant's files, oldest first.
  std::vector<stored_file> list(const std::string& tenant) const;
  /// Opens a file for reading. Returns nullptr if there is no such file, or, with errno set, if the
  /// file cannot be opened.
  std::unique_ptr<std::ifstream> open(const std::string& id) const;
  /// Deletes a file. Fails with errc::unknown_file, or with errc::conflict while the file is held.
  result<nothing> erase(const std::string& id, const std::string& tenant);
  /// Prevents a file from being erased until release(). Returns false if there is no such file.
  bool hold(const std::string& id);
  void release(const std::string& id);

  std::int64_t held_bytes() const;
  /// Adds to the ledger `to` (config/base/ledger.hpp) how many bytes are counted in total, how many
  /// files and bytes for each tenant, and how many of them belong to published files.
  /// account_growing() adds the bytes of a file that is being written.
  void account(ledger& to) const;
  /// Reports to the ledger that `holder` is writing a file that has `bytes` bytes.
  static void account_growing(ledger& to, const std::string& holder, const std::string& tenant,
                              std::int64_t bytes);
  static constexpr const char* holds = "holds of files that batches read";

private:
  struct entry {
    stored_file description;
    std::int32_t n_holds = 0;
  };

  struct held {
    std::int64_t bytes = 0; ///< includes the bytes of files that are being written
    std::size_t n_files = 0;
  };

  double share() const { return share_ ? share_() : 1.0; }
  result<nothing> reserve(const std::string& tenant, std::int64_t bytes);
  void give_back(const std::string& tenant, std::int64_t bytes);
  /// The caller must hold the mutex.
  void count(const std::string& tenant, std::int64_t bytes, int n_files);
  /// The caller must hold the mutex.
  std::size_t files_of(const std::string& tenant) const;
  void load(const under_way& find_under_way);
  std::filesystem::path path_of(const std::string& id) const { return folder_ / id; }
  bool make_folder(); ///< The caller must hold the mutex.

  mutable std::mutex mutex_;
  std::filesystem::path folder_;
  descriptor lock_; ///< the lock file of the folder
  bool temporary_;
  const std::int64_t max_bytes_;
  const std::function<double()> share_;
  const std::string server_name_;
  std::int64_t bytes_ = 0;
  std::map<std::string, entry> files_;
  std::map<std::string, held> tenants_; ///< only tenants that have files or bytes
};

} // namespace twill::net
