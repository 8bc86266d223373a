// journal: the file of the responses that run, to which each step adds one frame with one write().
//
// One thread. It keeps of each running response its number and how many bytes the file has of it,
// but not the bytes themselves. What a failed call left at the end of the file is cut off, at the
// latest before the next frame is written, so that no part of it counts. A response that ended
// stays in the file until the next rewriting; that it ended is written at once or, where that
// fails, with the next frame.
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

/// What one step adds. Who calls owns the texts.
struct journal_step {
  struct begun {
    const std::string* id;
    const std::string* head;
  };
  struct more {
    const std::string* id;
    const std::string* record;
  };
  std::vector<begun> begins; ///< before the records
  std::vector<more> records;
};

class journal {
public:
  static constexpr const char* file_name = "journal";
  static constexpr const char* new_name = "journal.new"; ///< of a rewriting that has not ended

  /// `folder` is open while the journal is. `sync_files`: what a rewriting writes is synced before
  /// it takes the old file's place. `sync_frames`: each frame is, before it counts.
  journal(file_ops& ops, int folder, bool sync_files, bool sync_frames)
      : ops_(ops), folder_(folder), sync_files_(sync_files), sync_frames_(sync_frames) {}

  struct opened {
    journal_content content;
    std::int64_t lost_bytes = 0; ///< at the end, which could not be read
    bool other_version = false;  ///< refused, and left as it is
    std::string moved_to;        ///< the name of what was there and is no journal, or empty
  };
  /// Reads the file, or makes an empty one.
  std::error_code open(opened& found);

  bool runs(const std::string& id) const { return running_.contains(id); }
  /// invalid_argument: an id to begin that runs already or is none, a record of one that does not
  /// run; file_too_large: 1 GiB or more at once. Nothing is added then.
  std::error_code append(const journal_step& what);
  /// A response no longer runs; flush() writes that.
  void end(const std::string& id);
  /// Writes which responses ended, where that is not written yet.
  std::error_code flush();
  /// flush(), and where files are synced, so is this.
  std::error_code settle();
  /// Replaces the file by one of what runs alone. `running` gives what was appended of a response;
  /// one for which it gives nothing runs no longer. The old file stays where this fails.
  std::error_code rewrite(const std::function<const stored_bytes*(const std::string&)>& running);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t dead_bytes() const { return dead_bytes_; }

private:
  struct live {
    std::uint32_t number = 0;
    std::int64_t bytes = 0;
  };
  struct draft; ///< a file that a rewriting writes

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
  bool has_tail_ = false;        ///< the file may have bytes after `bytes_`
  bool ends_unsynced_ = false;   ///< an end was written since the file was synced
  bool folder_unsynced_ = false; ///< the file took its name, and syncing the folder failed
};

} // namespace twill::net
