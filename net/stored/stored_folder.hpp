// stored_folder: the files of stored responses in the folder `responses.folder`: one file for each
// finished response, and one journal for all running responses. FORMAT.md describes the bytes of
// the files.
//
// Thread safety: any thread may call read() at any time; all other functions must be called on
// one thread. The folder has mode 0700 and its files have mode 0600. A lock keeps other processes
// from using the folder.
// Disk errors are returned as values, and each failed call may be repeated: unless its comment says
// otherwise, a failed call has changed nothing. If the process ends between two system calls, the
// folder holds either the state before the current call or the state after it. The same holds after
// a power failure, as far as the setting `responses.sync` promises it.
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
  /// A finished response, as the beginning of its file describes it. Only read() checks the rest of
  /// the file.
  struct finished {
    std::string id;
    std::string head;
    std::int64_t bytes = 0; ///< size of the file
  };
  /// A response whose file cannot be read. erase() removes the file.
  struct damaged {
    std::string id;
    std::int64_t changed_unix_s = 0;
  };
  struct contents {
    /// Finished responses by id; empty if open() was given `take`.
    std::vector<finished> over;
    /// Running responses from the journal, in the order in which they began.
    std::vector<stored_bytes> running;
    /// Log messages about everything that could not be read. They contain the setting's name, file
    /// names and numbers of bytes, and nothing from inside the files.
    std::vector<std::string> warnings;
    std::vector<damaged> left_out;
  };
  /// A callback that receives each finished response as it is found, so that not all heads (see
  /// stored_head) are in memory at once.
  using take_finished = std::function<void(finished)>;
  /// What one append() adds. The caller owns the strings.
  using step = journal_step;
  /// When fsync() is called.
  enum class sync {
    /// Nothing is lost when the process ends, but anything may be lost at a power failure.
    never,
    finished, ///< after finish() or tidy() has written a file, and after erase() has removed one
    step      ///< also after each append() and forget()
  };

  /// Opens the folder, or creates it; locks it; and reads its content. Leftovers of an interrupted
  /// call are removed. The error is one sentence for users that names the setting and the path.
  static twill::result<std::unique_ptr<stored_folder>, std::string>
  open(const std::filesystem::path& folder, sync how, contents& found,
       file_ops& ops = system_files(), const take_finished& take = {});

  /// Adds `what` to the journal with one write(). A failed call adds nothing: the caller must then
  /// append the same data again, together with newer data, or forget the responses.
  /// Fails with invalid_argument if a response to begin is already running or finished or has an
  /// invalid id (see is_stored_id()), or if a record (a stored event) belongs to a response that is
  /// not running. Fails with file_too_large if `what` has more than 1 GiB.
  std::error_code append(const step& what);
  /// Writes the file of a response; afterwards the response no longer runs. The response need not
  /// be in the journal. If only the sync of the folder fails, the file exists, but the response
  /// still counts as running.
  std::error_code finish(const stored_bytes& whole);
  /// Drops a running response without writing its file. The journal gets an entry which says that
  /// the response has ended; the bytes of the response leave the journal with the next tidy(). If
  /// the disk refuses to write that entry, the next call that writes to the journal repeats it.
  void forget(const std::string& id);
  /// Removes the file of a finished response, including one that open() reported as damaged. Fails
  /// with no_such_file_or_directory if there is no such file. If only the sync of the folder fails,
  /// the file is gone, and a second call repeats the sync.
  std::error_code erase(const std::string& id);
  /// Reads a finished response. Fails with bad_message if the file is damaged, and with
  /// not_supported if another version of twill wrote it.
  twill::result<stored_bytes, std::error_code> read(const std::string& id) const;
  /// The total size of the journal and of the files of finished responses, without the files that
  /// open() could not read.
  std::int64_t bytes() const { return file_bytes_ + journal_.bytes(); }
  /// Rewrites the journal with only the running responses, if it still has bytes of other
  /// responses. The last rewrite must be at least 1 s ago, plus 1 s for each 8 MiB of running
  /// responses. If the journal has more than 8 MiB and more than half of it belongs to responses
  /// that no longer run, it is rewritten without that wait, unless the last rewrite failed.
  /// `running` must return everything that was appended for a response, or null to drop the
  /// response.
  std::error_code tidy(std::chrono::steady_clock::time_point now,
                       const std::function<const stored_bytes*(const std::string& id)>& running);

  /// Whether tidy() has something to rewrite, now or after its wait.
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
  /// File sizes of the finished responses, by id.
  std::unordered_map<std::string, std::int64_t> files_;
  std::int64_t file_bytes_ = 0;
  /// The time of the last attempt to rewrite the journal.
  std::optional<std::chrono::steady_clock::time_point> last_rewriting_;
  bool last_failed_ = false;
};

} // namespace twill::net
