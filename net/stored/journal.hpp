// journal: the file of the stored responses that are still being generated. Each append() adds one
// frame, a block of entries with a checksum (see journal_format.hpp), with one write().
//
// Only one thread may use it. For each running response the object keeps its number and how many
// bytes of the file belong to it, but not the bytes themselves. If a call fails and leaves bytes at
// the end of the file, these are cut off before the next frame is written, so that no part of the
// failed frame counts. The entries of a response that has ended stay in the file until the next
// rewrite. The end of a response is written at once or, if that write fails, with the next frame.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "net/stored/file_ops.hpp"
#include "net/stored/journal_format.hpp"
#include "net/stored/stored_bytes.hpp"

namespace twill::net {

/// What one append() adds. The caller owns the strings.
struct journal_step {
  struct begun {
    const std::string* id;
    const std::string* head;
  };
  struct more {
    const std::string* id;
    const std::string* record;
  };
  std::vector<begun> begins; ///< responses that begin; written before the records
  std::vector<more> records;
};

class journal {
public:
  static constexpr const char* file_name = "journal";
  static constexpr const char* new_name = "journal.new"; ///< a rewrite that has not completed

  /// `folder` must stay open as long as the journal exists. With `sync_files`, rewrite() calls
  /// fsync() on the new file before the new file replaces the old one. With `sync_frames`, append()
  /// calls fsync() before it returns success.
  journal(file_ops& ops, int folder, bool sync_files, bool sync_frames)
      : ops_(ops), folder_(folder), sync_files_(sync_files), sync_frames_(sync_frames) {}

  struct opened {
    journal_content content;
    std::int64_t lost_bytes = 0; ///< how many bytes at the end of the file could not be read
    /// The file has another format version; open() has failed and left the file unchanged.
    bool other_version = false;
    /// The new name of a file that had the journal's name but was not a journal; empty if there was
    /// none.
    std::string moved_to;
  };
  /// Reads the file, or creates an empty one if there is none.
  std::error_code open(opened& found);

  bool runs(const std::string& id) const { return running_.contains(id); }
  /// Fails with invalid_argument if an id to begin is already running or is not a stored id, or if
  /// a record (a stored event) belongs to a response that is not running. Fails with file_too_large
  /// if `what` has more than 1 GiB. A failed call adds nothing.
  std::error_code append(const journal_step& what);
  /// Marks a response as no longer running. The file gets an entry about this with the next flush()
  /// or append().
  void end(const std::string& id);
  /// Writes the ends of responses that have not been written yet.
  std::error_code flush();
  /// Does what flush() does and, if `sync_files` is set, also syncs the file.
  std::error_code settle();
  /// Replaces the file by one that holds only running responses. `running` must return everything
  /// that was appended for a response, or null to drop the response. If the call fails before the
  /// rename, the old file stays in use.
  std::error_code rewrite(const std::function<const stored_bytes*(const std::string&)>& running);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t dead_bytes() const { return dead_bytes_; }

private:
  struct live {
    std::uint32_t number = 0;
    std::int64_t bytes = 0;
  };
  struct draft; ///< the new file of a rewrite

  std::error_code move_away(opened& found);
  std::error_code check(const journal_step& what) const;
  std::error_code write_frame();
  std::error_code cut_off();
  std::error_code sync_folder();
  std::error_code
  write_draft(draft& to, const std::function<const stored_bytes*(const std::string&)>& running);

  file_ops& ops_;
  int folder_;
  bool sync_files_;
  bool sync_frames_;
  file_handle file_;
  frame_writer frame_;
  std::unordered_map<std::string, live> running_;
  std::vector<std::uint32_t> unwritten_ends_;
  std::uint32_t last_number_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t dead_bytes_ = 0;
  bool has_tail_ = false;      ///< the file may have bytes after offset `bytes_`
  bool ends_unsynced_ = false; ///< an end was written, and the file has not been synced since
  /// The file was renamed, and the sync of the folder after that failed.
  bool folder_unsynced_ = false;
};

} // namespace twill::net
