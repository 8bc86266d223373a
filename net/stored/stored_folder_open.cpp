// The implementation of stored_folder::open(): creates and locks the folder and reads all its
// files.
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "net/stored/byte_source.hpp"
#include "net/stored/folder_names.hpp"
#include "net/stored/response_file.hpp"
#include "net/stored/stored_folder.hpp"

namespace twill::net {
namespace {

constexpr std::size_t most_warnings = 16;

std::error_code make_folders(file_ops& ops, const std::filesystem::path& path, bool synced) {
  if (ops.make_folder(path.c_str()) != 0) {
    if (errno == EEXIST) return {};
    const auto parent = path.parent_path();
    if (errno != ENOENT || parent.empty() || parent == path) return last_error();
    if (const auto error = make_folders(ops, parent, synced)) return error;
    if (ops.make_folder(path.c_str()) != 0) return last_error();
  }
  if (!synced) return {};
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const file_handle holder(ops, ops.open_folder(parent.c_str()));
  // A parent folder that this user may not read cannot be synced either; that is no reason to fail.
  if (holder.is_open()) static_cast<void>(ops.sync(holder.get()));
  return {};
}

} // namespace

class stored_folder::opener {
public:
  opener(const std::filesystem::path& folder, sync how, contents& found, file_ops& ops,
         const take_finished& take)
      // A trailing '/' is removed, since otherwise the parent would be the folder itself.
      : path_(folder.has_filename() ? folder : folder.parent_path()), how_(how), found_(found),
        ops_(ops), take_(take) {}

  twill::result<std::unique_ptr<stored_folder>, std::string> open() {
    if (!open_folder() || !lock()) return failure<std::string>{error_, {}};
    made_.reset(new stored_folder(ops_, std::move(folder_), std::move(lock_), how_));
    std::vector<std::string> names;
    if (ops_.list(made_->folder_.get(), names) != 0) {
      fail("cannot be listed", last_error());
      return failure<std::string>{error_, {}};
    }
    std::sort(names.begin(), names.end());
    for (const auto& name : names)
      if (name == journal::new_name || id_in(name, new_response_suffix).has_value())
        remove_temporary(name);
    if (!read_journal()) return failure<std::string>{error_, {}};
    for (const auto& name : names)
      if (const auto id = id_in(name, response_suffix)) read_response_file(*id);
    // A process that ended early may have renamed a file without syncing the folder. The sync makes
    // the rename durable before the service relies on it.
    if (const auto error = made_->sync_folder()) {
      fail("cannot be synced", error);
      return failure<std::string>{error_, {}};
    }
    // A response that has a file of its own has ended. This is written to the journal, the file of
    // running responses. If the write fails, the next append() repeats it.
    static_cast<void>(made_->journal_.flush());
    for (auto& [number, run] : journal_.content.runs)
      found_.running.push_back(std::move(run.whole));
    if (n_more_warnings_ > 0)
      found_.warnings.push_back("`responses.folder`: and " + std::to_string(n_more_warnings_) +
                                " more such files in " + path_.string());
    return std::move(made_);
  }

private:
  std::string named(const std::string& file) const { return (path_ / file).string(); }

  bool fail(const std::string& rule, const std::error_code& why) {
    error_ = "`responses.folder` " + path_.string() + " " + rule + ": " + why.message();
    return false;
  }

  void warn(const std::string& text) {
    if (found_.warnings.size() < most_warnings)
      found_.warnings.push_back("`responses.folder`: " + text);
    else
      ++n_more_warnings_;
  }

  bool open_folder() {
    if (path_.empty()) {
      error_ = "`responses.folder` must be the path of a folder, got an empty text";
      return false;
    }
    if (const auto error = make_folders(ops_, path_, how_ != sync::never))
      return fail("cannot be made; name a folder that this user may make or write to", error);
    folder_ = {ops_, ops_.open_folder(path_.c_str())};
    if (!folder_.is_open())
      return fail("cannot be opened; name a folder that this user may use", last_error());
    struct stat status {};
    if (ops_.status(folder_.get(), status) != 0) return fail("cannot be examined", last_error());
    if (status.st_uid != ::geteuid()) {
      error_ =
          "`responses.folder` must be a folder of this user, since it holds what users wrote; " +
          path_.string() + " belongs to user " + std::to_string(status.st_uid);
      return false;
    }
    if ((status.st_mode & 077) == 0) return true;
    if (ops_.change_mode(folder_.get(), 0700) != 0)
      return fail("is open to other users, and that cannot be changed; make its mode 0700",
                  last_error());
    warn("other users could enter " + path_.string() +
         ", which holds what users wrote; its mode is 0700 now");
    return true;
  }

  bool lock() {
    lock_ = {ops_, ops_.open(folder_.get(), lock_name, O_RDWR | O_CREAT)};
    if (!lock_.is_open())
      return fail("cannot be written to; make it writable or name another folder", last_error());
    if (ops_.lock(lock_.get()) == 0) return true;
    if (errno != EWOULDBLOCK)
      return fail("cannot be locked; name a folder on another disk", last_error());
    error_ = "`responses.folder` " + path_.string() +
             " is in use by another process; stop that one, or name another folder";
    return false;
  }

  void remove_temporary(const std::string& name) {
    if (ops_.remove(made_->folder_.get(), name.c_str()) == 0) return;
    const auto error = last_error();
    warn(named(name) + ", which an interrupted write left, cannot be removed: " + error.message());
  }

  bool read_journal() {
    const auto error = made_->journal_.open(journal_);
    if (journal_.other_version) {
      error_ = "`responses.folder`: " + named(journal::file_name) +
               " is of another version of twill, which has another format; nothing was changed. "
               "Start that version to finish what runs there, move the file away to give that up, "
               "or name another folder";
      return false;
    }
    if (error)
      return fail(std::string("has a journal that cannot be read or made (") + journal::file_name +
                      "); free the disk or mend it, or name another folder",
                  error);
    if (!journal_.moved_to.empty())
      warn(named(journal::file_name) + " was no journal of twill, or its beginning was damaged: " +
           "what ran there is lost; the file is now " + named(journal_.moved_to) +
           " and may be deleted");
    if (journal_.lost_bytes > 0)
      warn("the journal " + named(journal::file_name) + " lost " +
           std::to_string(journal_.lost_bytes) +
           " bytes at its end, of a write that was interrupted or of damage");
    return true;
  }

  void read_response_file(const std::string& id) {
    const auto leave_out = [&](const std::error_code& why) {
      const auto file = named(response_name(id));
      if (why == std::errc::not_supported)
        warn(file + " is of another version of twill and is left out");
      else if (why == std::errc::bad_message)
        note_damage(id, file);
      else
        warn(file + " cannot be read and is left out: " + why.message());
    };
    opened_file opened;
    if (const auto error = made_->open_file(id, opened)) return leave_out(error);
    file_source source(ops_, opened.file.get(), opened.bytes);
    auto beginning = read_response_beginning(source);
    if (!beginning.ok()) return leave_out(beginning.code());
    if (beginning.value().id != id) return leave_out(make_error_code(std::errc::bad_message));
    // If the last process ended right after it had written this file, the response is still in the
    // journal too. The file must then be read as a whole, because a power failure may have lost the
    // rest of it.
    if (made_->journal_.runs(id)) {
      if (const auto whole = read_response(source); !whole.ok()) return leave_out(whole.code());
      if (how_ != sync::never && ops_.sync(opened.file.get()) != 0) return leave_out(last_error());
      made_->journal_.end(id);
      std::erase_if(journal_.content.runs,
                    [&](const auto& run) { return run.second.whole.id == id; });
    }
    made_->set_file(id, opened.bytes);
    finished one{id, std::move(beginning.value().head), opened.bytes};
    if (take_)
      take_(std::move(one));
    else
      found_.over.push_back(std::move(one));
  }

  void note_damage(const std::string& id, const std::string& file) {
    warn(file + " is damaged and is left out; it may be deleted");
    // A response that is still running gets a new file at its end.
    if (made_->journal_.runs(id)) return;
    opened_file opened;
    struct stat status {};
    if (made_->open_file(id, opened)) return;
    if (ops_.status(opened.file.get(), status) != 0) return;
    found_.left_out.push_back({id, static_cast<std::int64_t>(status.st_mtime)});
  }

  std::filesystem::path path_;
  sync how_;
  contents& found_;
  file_ops& ops_;
  const take_finished& take_;
  std::string error_;
  std::size_t n_more_warnings_ = 0;
  file_handle folder_;
  file_handle lock_;
  journal::opened journal_;
  std::unique_ptr<stored_folder> made_;
};

twill::result<std::unique_ptr<stored_folder>, std::string>
stored_folder::open(const std::filesystem::path& folder, sync how, contents& found, file_ops& ops,
                    const take_finished& take) {
  found = {};
  return opener(folder, how, found, ops, take).open();
}

} // namespace twill::net
