// kept_folder: the folder of the disk tier, `kv.disk_dir`. What lies in it tells what users wrote:
// the folder is of mode 0700 and its files of mode 0600.
//
// Any thread. With `kv.keep` a file of blocks has a name that says for which model, layout, compute
// type and instruction set it is, and the folder has the key of scopes and block names. A model has
// one file: those of its path that nobody can use any more, since the model, the program or its
// options are others now, are removed when it is opened. Files of other models stay until `twill kv
// purge`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "actors/kv/keyed_hash.hpp"
#include "models/errc.hpp"

namespace twill::actors {

/// Says that a daemon uses what is kept in the folder, so that nobody purges it meanwhile.
class kept_folder_lock {
public:
  kept_folder_lock() = default;
  explicit kept_folder_lock(int fd) : fd_(fd) {}
  kept_folder_lock(kept_folder_lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  kept_folder_lock& operator=(kept_folder_lock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~kept_folder_lock();

private:
  int fd_ = -1; ///< of the folder
};

/// `kv.disk_dir`, or kv/ in the cache folder when that is empty.
models::result<std::string> kept_folder_path(const std::string& disk_dir);
/// Makes the folder where it is missing. A folder of another user, or one that others may enter, is
/// refused.
models::result<nothing> make_kept_folder(const std::string& folder);
/// The key that lies in the folder; a new one where none lies there or it is damaged.
models::result<hash_key> kept_key(const std::string& folder);
/// This process uses the key that lies in the folder, which is made where it is missing, and the
/// folder until the lock is gone. A purge under way is waited for, for some seconds.
models::result<kept_folder_lock> keep_scope_key(const std::string& disk_dir);
/// The file of blocks for the model at `model_path`.
std::string kept_file(const std::string& folder, const std::string& model_path,
                      const std::string& fingerprint);
/// Removes the other files of the model that nobody has open.
void remove_old_files(const std::string& folder, const std::string& model_path,
                      const std::string& fingerprint);
/// Removes what twill keeps in the folder. Returns how many bytes that were; fails when a daemon
/// uses it.
models::result<std::int64_t> purge_kept_folder(const std::string& folder);

} // namespace twill::actors
