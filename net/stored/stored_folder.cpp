#include "net/stored/stored_folder.hpp"

#include <cerrno>
#include <fcntl.h>
#include <utility>

#include "net/stored/byte_source.hpp"
#include "net/stored/folder_names.hpp"
#include "net/stored/response_file.hpp"

namespace twill::net {
namespace {

constexpr std::int64_t large_journal_bytes = 8 * 1024 * 1024;

std::error_code error_of(std::errc code) {
  return make_error_code(code);
}

bool is_full_disk(const std::error_code& error) {
  return error.value() == ENOSPC || error.value() == EDQUOT;
}

} // namespace

stored_folder::stored_folder(file_ops& ops, file_handle folder, file_handle lock, sync how)
    : ops_(ops), folder_(std::move(folder)), lock_(std::move(lock)), how_(how),
      journal_(ops, folder_.get(), how != sync::never, how == sync::step) {}

void stored_folder::set_file(const std::string& id, std::int64_t bytes) {
  auto& counted = files_[id];
  file_bytes_ += bytes - counted;
  counted = bytes;
}

std::error_code stored_folder::sync_folder() {
  return how_ != sync::never && ops_.sync(folder_.get()) != 0 ? last_error() : std::error_code();
}

std::error_code stored_folder::append(const step& what) {
  for (const auto& one : what.begins)
    if (files_.contains(*one.id)) return error_of(std::errc::invalid_argument);
  return journal_.append(what);
}

/// Writes a new file and closes it. If a step fails, the file is removed.
std::error_code stored_folder::write_file(const std::string& name, std::string_view bytes) {
  file_handle file(ops_, ops_.open(folder_.get(), name.c_str(), O_WRONLY | O_CREAT | O_TRUNC));
  if (!file.is_open()) return last_error();
  auto error = write_all(ops_, file.get(), bytes, 0);
  if (!error && how_ != sync::never && ops_.sync(file.get()) != 0) error = last_error();
  if (file.close() != 0 && !error) error = last_error();
  if (error) ops_.remove(folder_.get(), name.c_str());
  return error;
}

std::error_code stored_folder::finish(const stored_bytes& whole) {
  if (!is_stored_id(whole.id)) return error_of(std::errc::invalid_argument);
  const auto bytes = response_file_bytes(whole);
  if (!bytes.ok()) return bytes.code();
  const auto name = response_name(whole.id);
  const auto new_name = new_response_name(whole.id);
  if (const auto error = write_file(new_name, bytes.value())) return error;
  if (ops_.rename(folder_.get(), new_name.c_str(), name.c_str()) != 0) {
    const auto error = last_error();
    ops_.remove(folder_.get(), new_name.c_str());
    return error;
  }
  set_file(whole.id, static_cast<std::int64_t>(bytes.value().size()));
  if (const auto error = sync_folder()) return error;
  // Once a response has a file, its entries in the journal (the file of running responses) are
  // ignored. So the entry which says that the response has ended may reach the journal later.
  journal_.end(whole.id);
  static_cast<void>(journal_.flush());
  return {};
}

void stored_folder::forget(const std::string& id) {
  if (!journal_.runs(id)) return;
  // A finish() that failed in its last step has left a file behind.
  if (files_.contains(id) && ops_.remove(folder_.get(), response_name(id).c_str()) == 0) {
    set_file(id, 0);
    files_.erase(id);
  }
  journal_.end(id);
  static_cast<void>(journal_.flush());
}

std::error_code stored_folder::erase(const std::string& id) {
  if (!is_stored_id(id)) return error_of(std::errc::invalid_argument);
  if (journal_.runs(id)) return error_of(std::errc::no_such_file_or_directory);
  // If the file were removed first, a crash could leave entries of the response in the journal, but
  // no entry which says that it has ended, and the response would count as running again. So that
  // entry must be in the journal first. If the disk is full, the file is removed first, because
  // that makes room.
  const auto unsettled = journal_.settle();
  if (unsettled && !is_full_disk(unsettled)) return unsettled;
  const bool is_known = files_.contains(id);
  if (ops_.remove(folder_.get(), response_name(id).c_str()) != 0 && !(errno == ENOENT && is_known))
    return last_error();
  if (is_known) set_file(id, 0);
  if (unsettled) static_cast<void>(journal_.settle());
  if (const auto error = sync_folder()) return error;
  files_.erase(id);
  return {};
}

std::error_code stored_folder::open_file(const std::string& id, opened_file& to) const {
  to.file = {ops_, ops_.open(folder_.get(), response_name(id).c_str(), O_RDONLY)};
  if (!to.file.is_open()) return last_error();
  struct stat status {};
  if (ops_.status(to.file.get(), status) != 0) return last_error();
  to.bytes = status.st_size;
  return S_ISREG(status.st_mode) ? std::error_code() : error_of(std::errc::bad_message);
}

twill::result<stored_bytes, std::error_code> stored_folder::read(const std::string& id) const {
  const auto refuse = [](std::error_code why) { return failure<std::error_code>{why, {}}; };
  if (!is_stored_id(id)) return refuse(error_of(std::errc::invalid_argument));
  opened_file opened;
  if (const auto error = open_file(id, opened)) return refuse(error);
  file_source source(ops_, opened.file.get(), opened.bytes);
  auto whole = read_response(source);
  if (whole.ok() && whole.value().id != id) return refuse(error_of(std::errc::bad_message));
  return whole;
}

std::error_code
stored_folder::tidy(std::chrono::steady_clock::time_point now,
                    const std::function<const stored_bytes*(const std::string& id)>& running) {
  const auto dead = journal_.dead_bytes();
  if (dead == 0) return {};
  const auto live = journal_.bytes() - dead;
  const auto wait = std::chrono::seconds(1 + live / large_journal_bytes);
  const bool waited = !last_rewriting_.has_value() || now - *last_rewriting_ >= wait;
  const bool mostly_dead = journal_.bytes() > large_journal_bytes && dead > live;
  if (!waited && !(mostly_dead && !last_failed_)) return {};
  last_rewriting_ = now;
  const auto error = journal_.rewrite(running);
  last_failed_ = static_cast<bool>(error);
  return error;
}

} // namespace twill::net
