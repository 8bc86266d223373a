#include "net/stored/journal.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <limits>
#include <unordered_set>
#include <utility>

#include "net/stored/byte_source.hpp"

namespace twill::net {
namespace {

using running_bytes = std::function<const stored_bytes*(const std::string&)>;

/// A rewrite begins a new frame when the payload of the current one has reached this size.
constexpr std::size_t draft_frame_bytes = std::size_t{1} << 20;

std::int64_t entry_bytes(std::size_t payload) {
  return entry_overhead_bytes + static_cast<std::int64_t>(payload);
}

std::int64_t begin_bytes(std::string_view id, std::string_view head) {
  return entry_bytes(1 + id.size() + head.size());
}

} // namespace

std::error_code journal::open(opened& found) {
  file_ = {ops_, ops_.open(folder_, file_name, O_RDWR)};
  if (!file_.is_open()) {
    if (errno != ENOENT) return last_error();
    return rewrite([](const std::string&) { return nullptr; });
  }
  struct stat status {};
  if (ops_.status(file_.get(), status) != 0) return last_error();
  if (!S_ISREG(status.st_mode)) return move_away(found);
  file_source source(ops_, file_.get(), status.st_size);
  if (const auto error = read_journal(source, found.content)) return error;
  if (found.content.preamble == preamble_state::other_version) {
    found.other_version = true;
    return make_error_code(std::errc::not_supported);
  }
  if (found.content.preamble == preamble_state::damaged) return move_away(found);
  for (const auto& [number, run] : found.content.runs)
    running_[run.whole.id] = {number, run.bytes};
  last_number_ = found.content.last_number;
  dead_bytes_ = found.content.dead_bytes;
  bytes_ = found.content.good_bytes;
  found.lost_bytes = status.st_size - bytes_;
  has_tail_ = found.lost_bytes > 0;
  ends_unsynced_ = true; // it is unknown what the last process had synced
  if (has_tail_) static_cast<void>(cut_off());
  return {};
}

/// Renames a file that has the journal's name but is not a journal, and starts a new journal. The
/// old file is kept because it may belong to another program; an empty file is simply replaced.
std::error_code journal::move_away(opened& found) {
  struct stat status {};
  if (ops_.status(file_.get(), status) != 0) return last_error();
  file_ = {};
  if (!S_ISREG(status.st_mode) || status.st_size > 0) {
    found.moved_to = std::string(file_name) + ".damaged." + std::to_string(std::time(nullptr));
    if (ops_.rename(folder_, file_name, found.moved_to.c_str()) != 0) return last_error();
  }
  return rewrite([](const std::string&) { return nullptr; });
}

std::error_code journal::check(const journal_step& what) const {
  if (what.begins.size() > std::numeric_limits<std::uint32_t>::max() - last_number_)
    return make_error_code(std::errc::file_too_large);
  std::size_t bytes = unwritten_ends_.size() * entry_overhead_bytes;
  std::unordered_set<std::string_view> begun;
  for (const auto& one : what.begins) {
    if (!is_stored_id(*one.id) || runs(*one.id) || !begun.insert(*one.id).second)
      return make_error_code(std::errc::invalid_argument);
    bytes += static_cast<std::size_t>(begin_bytes(*one.id, *one.head));
  }
  for (const auto& one : what.records) {
    if (!runs(*one.id) && !begun.contains(*one.id))
      return make_error_code(std::errc::invalid_argument);
    bytes += static_cast<std::size_t>(entry_bytes(one.record->size()));
  }
  return bytes > most_payload_bytes ? make_error_code(std::errc::file_too_large)
                                    : std::error_code();
}

std::error_code journal::append(const journal_step& what) {
  if (const auto error = check(what)) return error;
  frame_.start();
  for (const auto number : unwritten_ends_)
    frame_.end(number);
  auto number = last_number_;
  for (const auto& one : what.begins) {
    frame_.begin(++number, *one.id, *one.head);
    running_[*one.id] = {number, begin_bytes(*one.id, *one.head)};
  }
  for (const auto& one : what.records)
    frame_.record(running_.find(*one.id)->second.number, *one.record);
  if (frame_.is_empty()) return {};
  if (const auto error = write_frame()) {
    for (const auto& one : what.begins)
      running_.erase(*one.id);
    return error;
  }
  last_number_ = number;
  for (const auto& one : what.records)
    running_.find(*one.id)->second.bytes += entry_bytes(one.record->size());
  return {};
}

/// Writes the frame, which holds what one append() adds, at the end of the file. If any step fails,
/// the frame is cut off again and does not count.
std::error_code journal::write_frame() {
  if (has_tail_)
    if (const auto error = cut_off()) return error;
  const auto bytes = frame_.finish(bytes_);
  if (bytes.empty()) return make_error_code(std::errc::file_too_large);
  auto error = write_all(ops_, file_.get(), bytes, bytes_);
  if (!error && sync_frames_) {
    if (folder_unsynced_) error = sync_folder();
    if (!error && ops_.sync(file_.get()) != 0) error = last_error();
  }
  if (error) {
    has_tail_ = true;
    static_cast<void>(cut_off());
    return error;
  }
  bytes_ += static_cast<std::int64_t>(bytes.size());
  const auto ends = static_cast<std::int64_t>(unwritten_ends_.size());
  dead_bytes_ += ends * entry_overhead_bytes;
  ends_unsynced_ = !sync_frames_ && (ends_unsynced_ || ends > 0);
  unwritten_ends_.clear();
  return {};
}

std::error_code journal::cut_off() {
  if (ops_.truncate(file_.get(), static_cast<off_t>(bytes_)) != 0) return last_error();
  has_tail_ = false;
  return {};
}

std::error_code journal::sync_folder() {
  if (ops_.sync(folder_) != 0) {
    folder_unsynced_ = true;
    return last_error();
  }
  folder_unsynced_ = false;
  return {};
}

void journal::end(const std::string& id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  unwritten_ends_.push_back(found->second.number);
  dead_bytes_ += found->second.bytes;
  running_.erase(found);
}

std::error_code journal::flush() {
  return append({});
}

std::error_code journal::settle() {
  if (const auto error = flush()) return error;
  if (!sync_files_) return {};
  if (folder_unsynced_)
    if (const auto error = sync_folder()) return error;
  if (ends_unsynced_ && ops_.sync(file_.get()) != 0) return last_error();
  ends_unsynced_ = false;
  return {};
}

struct journal::draft {
  file_handle file;
  std::unordered_map<std::string, live> running;
  std::uint32_t last_number = 0;
  std::int64_t bytes = 0;
};

std::error_code journal::write_draft(draft& to, const running_bytes& running) {
  const auto preamble = make_preamble(stored_kind::journal);
  if (const auto error = write_all(ops_, to.file.get(), preamble, 0)) return error;
  to.bytes = static_cast<std::int64_t>(preamble.size());
  const auto write = [&]() -> std::error_code {
    if (frame_.is_empty()) return {};
    const auto bytes = frame_.finish(to.bytes);
    if (bytes.empty()) return make_error_code(std::errc::file_too_large);
    if (const auto error = write_all(ops_, to.file.get(), bytes, to.bytes)) return error;
    to.bytes += static_cast<std::int64_t>(bytes.size());
    frame_.start();
    return {};
  };
  std::vector<std::pair<std::uint32_t, const std::string*>> in_order;
  for (const auto& [id, one] : running_)
    in_order.emplace_back(one.number, &id);
  std::sort(in_order.begin(), in_order.end());
  frame_.start();
  for (const auto& [old_number, id] : in_order) {
    const auto* whole = running(*id);
    if (whole == nullptr) continue;
    frame_.begin(++to.last_number, *id, whole->head);
    auto& one = to.running[*id] = {to.last_number, begin_bytes(*id, whole->head)};
    for (const auto& record : whole->records) {
      frame_.record(to.last_number, record);
      one.bytes += entry_bytes(record.size());
      if (frame_.payload_bytes() < draft_frame_bytes) continue;
      if (const auto error = write()) return error;
    }
  }
  if (const auto error = write()) return error;
  return sync_files_ && ops_.sync(to.file.get()) != 0 ? last_error() : std::error_code();
}

std::error_code journal::rewrite(const running_bytes& running) {
  draft made;
  made.file = {ops_, ops_.open(folder_, new_name, O_RDWR | O_CREAT | O_TRUNC)};
  if (!made.file.is_open()) return last_error();
  auto error = write_draft(made, running);
  if (!error && ops_.rename(folder_, new_name, file_name) != 0) error = last_error();
  if (error) {
    ops_.remove(folder_, new_name);
    return error;
  }
  file_ = std::move(made.file);
  running_ = std::move(made.running);
  last_number_ = made.last_number;
  bytes_ = made.bytes;
  dead_bytes_ = 0;
  unwritten_ends_.clear();
  has_tail_ = false;
  ends_unsynced_ = false;
  return sync_files_ ? sync_folder() : std::error_code();
}

} // namespace twill::net
