// batch_folder: the descriptions of batches in `batches.folder`, which stay when the daemon ends.
//
// Each batch has a file ID.batch. This file is only ever replaced as a whole: the new content is
// written to ID.batch.new, which is then renamed. While a batch is running, an ID.batch.new filled
// with spaces lies in the folder, so that the next change has room even on a full disk.
// Thread safety: open() must be called first; then any thread may call save(). One mutex is held
// while a file is written, so that the last content written is the newest.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/batch/batch.hpp"
#include "net/batch/batch_table.hpp"

namespace twill::net {

class batch_folder {
public:
  explicit batch_folder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  struct contents {
    std::vector<batch> batches; ///< in the order in which they were created
    /// The ids of files that running batches or damaged descriptions of batches name. The files
    /// must be kept, even those that were never published by file_store::writer::publish(). Empty
    /// if the ids could not be determined.
    std::optional<std::set<std::string>> files;
  };
  /// Reads the descriptions of all batches; afterwards save() works. Only the process that has
  /// locked the folder may call this. A description that cannot be read is reported in the log, and
  /// its file is not changed.
  contents open();
  /// Whether open() was called, which means that batches outlive the daemon.
  bool is_open() const { return open_; }

  /// Writes the description of the batch `id` with the values in `from`, or removes the description
  /// if `from` no longer has the batch. Fails with errc::storage_full if the disk is full, and with
  /// errc::busy if the process has no free descriptor; the previous description then stays.
  result<nothing> save(const batch_table& from, const std::string& id);
  /// Calls save() and only logs a failure. Use it for changes that the next start of the daemon
  /// makes again if they were not written.
  void save_or_warn(const batch_table& from, const std::string& id);

private:
  std::filesystem::path path_of(const std::string& id) const { return folder_ / (id + ".batch"); }
  void read(const std::filesystem::path& path, contents& to) const;

  const std::filesystem::path folder_;
  bool open_ = false;
  std::mutex mutex_;
};

} // namespace twill::net
