// batch_folder: the descriptions of batches in `batches.folder`, which outlive the daemon.
//
// Each batch has a file ID.batch, which is only ever replaced as a whole: it is written under
// ID.batch.new and renamed. While a batch is under way, its ID.batch.new lies there, filled with
// spaces, so that the next change finds room on a full disk too.
// Thread safety: open() before all else, then save() from any thread; one mutex, held while a file
// is written, so that the last one written is the newest.
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
    std::vector<batch> batches; ///< in the order in which they were made
    /// Files that were perhaps not published and that are needed: batches under way name them, or
    /// damaged descriptions. None when they are not known.
    std::optional<std::set<std::string>> files;
  };
  /// Reads all descriptions, and has save() work from now on. Only whoever has locked the folder
  /// may call it. A description that cannot be read is reported in the log and left as it is.
  contents open();
  /// Whether open() was called: batches outlive the daemon.
  bool is_open() const { return open_; }

  /// Writes the description of a batch as the table has it; removes it when the table has forgotten
  /// the batch. Fails with errc::storage_full when the disk does not take it, and with errc::busy
  /// when the process has no descriptor left; the description is then the one before.
  result<nothing> save(const batch_table& from, const std::string& id);
  /// For changes that the next start makes again when they were not written.
  void save_or_warn(const batch_table& from, const std::string& id);

private:
  std::filesystem::path path_of(const std::string& id) const { return folder_ / (id + ".batch"); }
  void read(const std::filesystem::path& path, contents& to) const;

  const std::filesystem::path folder_;
  bool open_ = false;
  std::mutex mutex_;
};

} // namespace twill::net
