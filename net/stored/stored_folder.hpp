// stored_folder: the files of stored responses, in the folder `responses.folder`: one of each
// response that is over, and one journal of all that run. README.md has their formats.
//
// Thread safety: read() from any thread at any time; everything else on one thread. The folder is
// of mode 0700, its files of 0600, and no other process uses it meanwhile.
// Failures of the disk are values, and each call may be made again: what a failed call was to
// change is as it was before it, unless its comment says otherwise. A process that ends between any
// two system calls leaves what was before a call, or what is after it; so does a power failure, as
// far as `sync` says.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "config/base/result.hpp"
#include "net/stored/file_ops.hpp"
#include "net/stored/journal.hpp"
#include "net/stored/stored_bytes.hpp"

namespace twill::net {

class stored_folder {
public:
  /// A response that is over, as its file's beginning says; read() checks the rest of the file.
  struct finished {
    std::string id;
    std::string head;
    std::int64_t bytes = 0; ///< of the file
  };
  /// A file of a response that cannot be read; erase() removes it.
  struct damaged {
    std::string id;
    std::int64_t changed_unix_s = 0;
  };
  struct contents {
    std::vector<finished> over;        ///< by id, unless who opens takes them one by one
    std::vector<stored_bytes> running; ///< of the journal, in the order in which they began
    /// What could not be read, for the log: they name the setting, files and numbers of bytes, and
    /// nothing of what the files hold.
    std::vector<std::string> warnings;
    std::vector<damaged> left_out;
  };
  /// Takes what is over as it is found, so that not all heads are in memory at once.
  using take_finished = std::function<void(finished)>;
  /// What one step adds. The texts belong to the caller.
  using step = journal_step;
  /// After which writes fsync() is called.
  enum class sync {
    never,    ///< nothing is lost when the process ends, and anything may be with the power
    finished, ///< when finish() or tidy() has written a file, and when erase() has removed one
    step      ///< also after each append() and forget()
  };

  /// Opens or makes the folder, locks it, and reads what is there. What an interrupted call left is
  /// removed. The error is one sentence for people that names the setting and the path.
  static twill::result<std::unique_ptr<stored_folder>, std::string>
  open(const std::filesystem::path& folder, sync how, contents& found,
       file_ops& ops = system_files(), const take_finished& take = {});

  /// Adds to the journal with one write(). No part of it counts if it fails: then the caller gives
  /// the same once more, together with what came since, or forgets the responses.
  /// invalid_argument: a response to begin runs or is over already, or has an id that is none (see
  /// is_stored_id()), or a record is of one that does not run. file_too_large: 1 GiB or more.
  std::error_code append(const step& what);
  /// Writes the file of a response, after which it runs no longer. It need not have run. Where only
  /// syncing the folder failed, the response runs on although its file is there.
  std::error_code finish(const stored_bytes& whole);
  /// A running response shall not be kept. Its bytes leave the journal with the next tidy(). Where
  /// the disk does not take this, the next call tries again.
  void forget(const std::string& id);
  /// Removes the file of a response that is over, also one that open() left out.
  /// no_such_file_or_directory: there is none. Where only syncing the folder failed, the file is
  /// gone, and a second call syncs.
  std::error_code erase(const std::string& id);
  /// A response that is over. bad_message: the file is damaged; not_supported: another version of
  /// twill wrote it.
  twill::result<stored_bytes, std::error_code> read(const std::string& id) const;
  /// Of the journal and of the files of responses that are over, without those that open() left
  /// out.
  std::int64_t bytes() const { return file_bytes_ + journal_.bytes(); }
  /// Rewrites the journal with what runs, where it has bytes of something that does not: when the
  /// last time is a second ago, and one more for each 8 MiB that run; or when the journal is over
  /// 8 MiB, most of which is dead. `running` gives what was appended of a response; one for which
  /// it gives nothing is forgotten.
  std::error_code tidy(std::chrono::steady_clock::time_point now,
                       const std::function<const stored_bytes*(const std::string& id)>& running);

  /// Whether tidy() has something to do, now or later.
  bool has_dead_bytes() const { return journal_.dead_bytes() > 0; }

private:
  stored_folder(file_ops& ops, file_handle folder, file_handle lock, sync how);

  class opener;

  struct opened_file {
    file_handle file;
    std::int64_t bytes = 0;
  };

  std::error_code write_file(const std::string& name, std::string_view bytes);
  std::error_code open_file(const std::string& id, opened_file& to) const;
  std::error_code sync_folder();
  void set_file(const std::string& id, std::int64_t bytes);

  file_ops& ops_;
  file_handle folder_;
  file_handle lock_;
  sync how_;
  journal journal_;
  std::unordered_map<std::string, std::int64_t> files_; ///< bytes of what is over, by id
  std::int64_t file_bytes_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_rewriting_; ///< or try
  bool last_failed_ = false;
};

} // namespace twill::net
