// kept_folder: the folder of the disk tier, `kv.disk_dir`. What lies in it tells what users wrote:
// the folder is of mode 0700 and its files of mode 0600.
//
// Any thread. With `kv.keep` a file of blocks has a name that says for which model, layout, compute
// type and instruction set it is, and the folder has the key of scopes and block names. Files of
// other models stay until `twill kv purge`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/kv/keyed_hash.hpp"
#include "models/errc.hpp"

namespace twill::actors {

/// `kv.disk_dir`, or kv/ in the cache folder when that is empty.
models::result<std::string> kept_folder_path(const std::string& disk_dir);
/// Makes the folder where it is missing. A folder of another user, or one that others may enter, is
/// refused.
models::result<nothing> make_kept_folder(const std::string& folder);
/// The key that lies in the folder; a new one where none lies there or it is damaged.
models::result<hash_key> kept_key(const std::string& folder);
/// This process uses the key that lies in the folder, which is made where it is missing.
models::result<nothing> keep_scope_key(const std::string& disk_dir);
/// The file of blocks for a model.
std::string kept_file(const std::string& folder, const std::string& fingerprint);
/// Removes what twill keeps in the folder. Returns how many bytes that were; fails when a daemon
/// uses it.
models::result<std::int64_t> purge_kept_folder(const std::string& folder);

} // namespace twill::actors
