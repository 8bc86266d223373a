// file_store: uploaded and written files in one folder, bounded in bytes and number, over all and
// for each tenant.
//
// Thread safety: any thread; one mutex that is not held while bytes are written. A file belongs to
// a tenant, nobody else finds it. Without a configured folder a private temporary one is made at
// the first file and removed with the store; a configured one is read at the start and kept. Beside
// each file ID lies ID.json with its name, purpose and tenant. A store locks its folder, so that
// the next one can tell what a killed daemon left behind (temporary folders, files that were never
// published) from what is in use, and removes it. Files that a batch goes on with stay.
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

/// What to tell a client whose id names no file of its tenant on this server.
api_error no_such_file(const std::string& id, const std::string& server_name);

/// The part of `whole` that a share is: at least one, where it is a number of things.
inline std::size_t share_of(std::size_t whole, double share) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(whole) * share));
}

class file_store {
public:
  /// The ids of files that were not published and that a batch goes on with; none when they are not
  /// known, so that nothing may be removed.
  using under_way = std::function<std::optional<std::set<std::string>>()>;

  /// `share` is asked what part of the bytes and of the files one tenant may hold now; without it a
  /// tenant may hold all. Ids carry `server_name`. `find_under_way` is called once, here, and only
  /// when the folder is a configured one and its lock is this store's. Throws std::runtime_error
  /// when a configured folder cannot be used.
  file_store(std::string folder, std::int64_t max_bytes, std::function<double()> share = {},
             std::string server_name = {}, const under_way& find_under_way = {});
  ~file_store();
  file_store(const file_store&) = delete;
  file_store& operator=(const file_store&) = delete;

  /// A file that grows. It can be found once it is published; otherwise it is removed with the
  /// writer, unless keep() was called and it has bytes. The space of its description is taken
  /// first, so that what was appended can be published on a full disk too. One thread at a time;
  /// the store must outlive it.
  class writer {
  public:
    writer(file_store& store, std::string id, std::string tenant, std::filesystem::path path);
    /// Of a file that exists, with keep() called.
    writer(file_store& store, std::string id, std::string tenant, std::filesystem::path path,
           descriptor reopened);
    ~writer();
    writer(const writer&) = delete;
    writer& operator=(const writer&) = delete;

    /// Fails with errc::storage_full when the budget, the tenant's share of it or the disk is full,
    /// and with errc::busy when the process has no descriptor left; the file is then as it was
    /// before, and may be published where it could be opened.
    result<nothing> append(std::string_view bytes);
    /// Leaves the file for reopen() when the writer goes.
    void keep() { kept_ = true; }
    const std::string& id() const { return id_; }
    std::int64_t bytes() const { return bytes_; }
    /// What was written; nullptr, with errno, when it cannot be opened.
    std::unique_ptr<std::ifstream> read() const;
    /// Removes what is behind the first `bytes`, of which there must be as many.
    result<nothing> cut(std::int64_t bytes);
    /// The tenant is the one that create() was given.
    result<stored_file> publish(stored_file description);

  private:
    file_store& store_;
    std::string id_, tenant_;
    std::filesystem::path path_;
    descriptor out_, description_;
    std::optional<api_error> fault_; ///< the files could not be opened
    std::int64_t bytes_ = 0;
    bool kept_ = false;
    bool published_ = false;
  };

  /// Fails with errc::batch_limit when there are too many files, of all tenants or of this one.
  result<std::unique_ptr<writer>> create(const std::string& tenant);
  /// Opens a file that an earlier store left, to write more to it; one that was published must be
  /// published anew to be found. Its bytes count, however full the store is. Fails with
  /// errc::unknown_file when there is no such output of this tenant, otherwise as append() does.
  result<std::unique_ptr<writer>> reopen(const std::string& id, const std::string& tenant);
  /// Stores a whole file; of the description only tenant, filename and purpose are used.
  result<stored_file> put(stored_file description, std::string_view bytes);

  std::optional<stored_file> find(const std::string& id, const std::string& tenant) const;
  /// Oldest first.
  std::vector<stored_file> list(const std::string& tenant) const;
  /// Opens a file for reading; nullptr when there is no such file, or with errno when it cannot be
  /// opened.
  std::unique_ptr<std::ifstream> open(const std::string& id) const;
  /// Fails with errc::unknown_file, or with errc::conflict while the file is held.
  result<nothing> erase(const std::string& id, const std::string& tenant);
  /// Keeps a file from being erased until release(); false when there is no such file.
  bool hold(const std::string& id);
  void release(const std::string& id);

  std::int64_t held_bytes() const;
  /// What files take of the store, and of the share of their tenant; of those that grow, only what
  /// their writers have taken (see account_growing).
  void account(ledger& to) const;
  /// That `holder` writes a file of so many bytes.
  static void account_growing(ledger& to, const std::string& holder, const std::string& tenant,
                              std::int64_t bytes);
  static constexpr const char* holds = "holds of files that batches read";

private:
  struct entry {
    stored_file description;
    std::int32_t n_holds = 0;
  };

  struct held {
    std::int64_t bytes = 0; ///< those of files that are being written included
    std::size_t n_files = 0;
  };

  double share() const { return share_ ? share_() : 1.0; }
  result<nothing> reserve(const std::string& tenant, std::int64_t bytes);
  void give_back(const std::string& tenant, std::int64_t bytes);
  void count(const std::string& tenant, std::int64_t bytes, int n_files); ///< under the mutex
  std::size_t files_of(const std::string& tenant) const;                  ///< under the mutex
  void load(const under_way& find_under_way);
  std::filesystem::path path_of(const std::string& id) const { return folder_ / id; }
  bool make_folder(); ///< the caller holds the mutex

  mutable std::mutex mutex_;
  std::filesystem::path folder_;
  descriptor lock_; ///< of the folder
  bool temporary_;
  const std::int64_t max_bytes_;
  const std::function<double()> share_;
  const std::string server_name_;
  std::int64_t bytes_ = 0;
  std::map<std::string, entry> files_;
  std::map<std::string, held> tenants_; ///< those that hold something
};

} // namespace twill::net
