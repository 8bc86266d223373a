// Part of stored_service for the time after a restart: loads the stored responses from the folder,
// and continues those that were running.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "config/base/log.hpp"
#include "net/error_map.hpp"
#include "net/stored/stored_folder.hpp"
#include "net/stored/stored_record.hpp"
#include "net/stored/stored_service.hpp"
#include "net/stored/stored_units.hpp"

namespace twill::net {
namespace {

using std::chrono::milliseconds;

/// The longest timeout that a resumed request may get.
constexpr std::chrono::hours longest_timeout{24 * 366};
/// How many times a response is resumed by a new process before it fails.
constexpr std::ptrdiff_t most_resumes = 2;

stored_folder::sync sync_of(std::string_view word) {
  if (word == "step") return stored_folder::sync::step;
  return word == "never" ? stored_folder::sync::never : stored_folder::sync::finished;
}

} // namespace

void stored_service::recover() {
  if (around_.options.folder.empty()) return;
  const auto make = [](const std::string& id, const std::string& text) -> entry_ptr {
    auto head = read_head(text);
    if (!head || head->id != id) {
      log::warn("`responses.folder`: the stored response " + id + " has no head that can be read");
      return nullptr;
    }
    // If the clock was wrong when the response was created, the time is clamped to the present, so
    // that nothing is kept for longer than `responses.keep`.
    head->created_unix_s = std::clamp<std::int64_t>(head->created_unix_s, 0, unix_ms() / 1000);
    return entry_of(*head);
  };
  std::vector<entry_ptr> over;
  stored_folder::contents found;
  auto opened = stored_folder::open(around_.options.folder, sync_of(around_.options.sync), found,
                                    around_.files != nullptr ? *around_.files : system_files(),
                                    [&](const stored_folder::finished& one) {
                                      const auto entry = make(one.id, one.head);
                                      if (entry == nullptr) return;
                                      entry->room = room_beside + one.bytes;
                                      entry->at = stored_entry::stage::over;
                                      entry->on_disk = true;
                                      over.push_back(entry);
                                    });
  if (!opened.ok()) throw std::runtime_error(opened.code());
  folder_ = std::move(opened).value();
  for (const auto& warning : found.warnings)
    log::warn(warning);
  for (const auto& one : found.left_out)
    if (one.changed_unix_s + table_.keep().count() <= unix_ms() / 1000) remove_damaged(one.id);
  std::stable_sort(over.begin(), over.end(), [](const auto& a, const auto& b) {
    return a->created_unix_s < b->created_unix_s;
  });
  for (const auto& entry : over) {
    table_.add(entry);
    table_.set_over(*entry);
  }
  for (auto& one : found.running) {
    const auto entry = make(one.id, one.head);
    if (entry == nullptr) continue;
    entry->room = room_of(one);
    entry->n_shown = entry->n_written = one.records.size();
    entry->bytes = std::make_shared<stored_bytes>(std::move(one));
    entry->begun = true;
    table_.add(entry);
    live_[entry->id] = entry;
    if (read_drawn(entry->bytes->records, entry->n_choices).over) {
      entry->at = stored_entry::stage::over;
      note_over(entry);
    } else {
      to_go_on_.push_back(entry);
    }
  }
  for (const auto& entry : table_.all())
    table_.make_room(entry->tenant, 0, to_drop_);
  next_expiry_unix_s_ = table_.next_expiry_unix_s();
}

/// A damaged file is removed after `responses.keep` too, counted from the file's last change.
void stored_service::remove_damaged(const std::string& id) {
  if (const auto error = folder_->erase(id))
    return note_failure("the damaged file of a response whose time is over is still there", error);
  log::info("`responses.folder`: the damaged file of " + id + ", whose time is over, was removed");
}

bool stored_service::is_loading() const {
  return around_.engine.state() == actors::engine_state::loading;
}

/// Resumes the responses that an earlier process began, once the engine accepts requests.
void stored_service::go_on() {
  if (to_go_on_.empty() || is_loading()) return;
  if (clock::now() < next_go_on_) return;
  next_go_on_ = clock::now() + stored_retry_after;
  std::vector<entry_ptr> left;
  for (const auto& entry : std::exchange(to_go_on_, {}))
    if (!go_on_with(entry)) left.push_back(entry);
  to_go_on_.insert(to_go_on_.end(), left.begin(), left.end());
  show_written(write_down());
  finish_files();
}

/// Returns false if the call must be repeated later.
bool stored_service::go_on_with(const entry_ptr& entry) {
  std::unique_lock lock(mutex_);
  if (handing_over_) return false;
  if (entry->at != stored_entry::stage::beginning || entry->forgotten) return true;
  const auto drawn = read_drawn(entry->bytes->records, entry->n_choices);
  entry->started = drawn.started;
  const auto left = entry->deadline_unix_ms > 0 ? entry->deadline_unix_ms - unix_ms() : 0;
  if (entry->deadline_unix_ms > 0 && left <= 0) {
    end(entry, actors::errc::timed_out, "its time passed before the server was started again");
    return true;
  }
  if (!entry->resumed && drawn.resumes >= most_resumes) {
    end(entry, actors::errc::executor_failed,
        "the server has stopped three times in the middle of it, so that it is not gone on with");
    return true;
  }
  lock.unlock();
  const auto head = read_head(entry->bytes->head).value();
  auto asked = around_.ask_again(head);
  std::string mark = resume_mark();
  stored_folder::step step;
  step.records.push_back({&entry->id, &mark});
  // If resuming this response makes the process crash, it must not be tried without end. Therefore
  // the attempt is recorded in the journal first.
  const bool noted = entry->resumed || (asked.ok() && !folder_->append(step));
  lock.lock();
  if (entry->at != stored_entry::stage::beginning || entry->forgotten) return true;
  if (!asked.ok()) {
    if (map_error(asked.code()).retry_after_s > 0) return false;
    end(entry, actors::errc::model_changed,
        "what it asked is not served any more: " + asked.code().message);
    return true;
  }
  if (!noted) return false;
  if (!std::exchange(entry->resumed, true)) {
    entry->bytes->records.push_back(std::move(mark));
    entry->n_shown = entry->n_written = entry->bytes->records.size();
  }
  entry->resuming = true;
  auto& request = asked.value();
  request.tenant = head.tenant;
  request.client = head.tenant.empty() ? "stored responses" : "key " + head.tenant;
  request.client_id = head.client_id;
  request.sampling.seed = head.seed;
  if (left > 0) request.timeout = std::min<milliseconds>(milliseconds(left), longest_timeout);
  if (drawn.started) {
    request.continues = drawn.continuity;
    // With max_tokens = 0 no tokens are generated, so there are none to continue.
    if (request.sampling.max_tokens != 0) request.made = drawn.made;
  }
  entry->asked = std::move(request);
  submit(entry);
  return true;
}

} // namespace twill::net
