// kept_folder: the folder `kv.disk_dir`, in which KV blocks are kept on disk. Its contents reveal
// what users wrote, so the folder has mode 0700 and its files have mode 0600.
//
// Any thread may call any function. With `kv.keep`, the name of a file of blocks identifies the
// model, the blocks' layout, the data type of the computation and the instruction set. The folder
// also holds the key with which cache scopes (cache_scope.hpp) and block names are hashed. A model
// has one such file. When the file is opened, older files of the same model path are removed if
// their names differ: the model, the program or its options have changed, so nothing can use them
// any more. Files of other models stay until `twill kv purge`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "actors/kv/keyed_hash.hpp"
#include "models/errc.hpp"

namespace twill::actors {

/// A lock that marks the folder as used by a daemon, so that no other process purges it meanwhile.
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
  int fd_ = -1; ///< descriptor of the folder; -1: no lock is held
};

/// Returns `kv.disk_dir`, or kv/ in the cache folder if `kv.disk_dir` is empty.
models::result<std::string> kept_folder_path(const std::string& disk_dir);
/// Creates the folder if it does not exist. Fails if the folder belongs to another user or if
/// others may enter it.
models::result<nothing> make_kept_folder(const std::string& folder);
/// Returns the hash key stored in the folder, with which KV blocks are named. If there is none or
/// it is damaged, a new key is stored and returned.
models::result<hash_key> kept_key(const std::string& folder);
/// Makes this process hash cache scopes (use_scope_key()) with the key that the folder stores.
/// Creates the folder and the key if they do not exist. The folder counts as in use until the
/// returned lock is destroyed. If another process is purging the folder, this function waits up to
/// 5 seconds for it.
models::result<kept_folder_lock> keep_scope_key(const std::string& disk_dir);
/// Returns the path of the file of blocks for the model at `model_path`.
std::string kept_file(const std::string& folder, const std::string& model_path,
                      const std::string& fingerprint);
/// Removes the model's other files of blocks, except those that a process has open.
void remove_old_files(const std::string& folder, const std::string& model_path,
                      const std::string& fingerprint);
/// Removes all files that twill keeps in the folder, and returns their size in bytes. Fails if a
/// daemon uses the folder.
models::result<std::int64_t> purge_kept_folder(const std::string& folder);

} // namespace twill::actors
