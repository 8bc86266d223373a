// The keeper of stored responses: the thread that takes the engine's events, writes them to the
// journal, and then delivers them to readers.
#include <algorithm>
#include <utility>

#include "config/base/log.hpp"
#include "net/error_map.hpp"
#include "net/stored/stored_api.hpp"
#include "net/stored/stored_folder.hpp"
#include "net/stored/stored_record.hpp"
#include "net/stored/stored_service.hpp"
#include "net/stored/stored_units.hpp"

namespace twill::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// How often the keeper checks whether the models are loaded while responses wait to be resumed.
constexpr milliseconds loading_poll{50};
constexpr seconds warn_again_after{10};
/// The keeper checks for expired responses at least this often, since the system clock may be set.
constexpr seconds longest_rest{3600};

} // namespace

void stored_service::run() {
  stored_inbox::events arrived;
  auto until = clock::now();
  // The inbox is closed when the service stops. The loop then runs once more, so that work for
  // callers that already wait is still done.
  for (bool open = true; open;) {
    open = inbox_->take(arrived, until);
    std::vector<std::promise<void>> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
      for (auto& entry : std::exchange(to_begin_, {})) {
        live_[entry->id] = entry;
        const bool over = entry->at == stored_entry::stage::over;
        (over ? to_finish_ : beginning_).push_back(std::move(entry));
      }
      for (auto& [entry, ev] : arrived)
        take(entry, std::move(ev));
      cancel_wanted();
      end_holed();
    }
    show_written(write_down());
    finish_files();
    if (open) go_on();
    drop_files();
    // After the inbox is closed this loop does not run again. Therefore look_after() gets a time in
    // the future, so that all work which waits for a later time is done now.
    look_after(open ? clock::now() : clock::now() + std::chrono::hours(1));
    for (auto& one : waiting)
      one.set_value();
    const std::lock_guard lock(mutex_);
    until = next_look_;
  }
}

/// Adds an event of the engine to its response.
void stored_service::take(const entry_ptr& entry, actors::event&& ev) {
  if (entry->at != stored_entry::stage::running) return;
  const bool new_here = !entry->started && !entry->background && !entry->resumed;
  if (ev.error && new_here) return forget(entry, *ev.error);
  if (ev.error && ev.error->code == actors::errc::shutting_down && folder_ != nullptr)
    return interrupt(entry);
  if (ev.error && entry->resuming && map_error(ev.error->code).retry_after_s > 0)
    return go_on_later(entry);
  entry->resuming = false;
  // The records of the first run already have the event `started`.
  if (ev.started && entry->started && ev.tokens.empty()) return;
  entry->started = entry->started || ev.started;
  if (ev.last) entry->at = stored_entry::stage::over;
  add_record(entry, write_record(ev));
}

/// Submits a response of an earlier process again later, because the engine could not take it now.
/// After a restart all interrupted responses are submitted at once, and the engine's queue may be
/// too short for them.
void stored_service::go_on_later(const entry_ptr& entry) {
  entry->at = stored_entry::stage::beginning;
  entry->resuming = false;
  to_go_on_.push_back(entry);
}

/// Marks a response to be resumed by the next process. Its readers get an error that says so; the
/// error is not stored with the response.
void stored_service::interrupt(const entry_ptr& entry) {
  if (entry->at == stored_entry::stage::running) around_.engine.cancel(entry->request);
  entry->at = stored_entry::stage::interrupted;
  entry->leave_at = clock::time_point::max();
  cut(*entry,
      {actors::errc::interrupted,
       "the server stops; this response goes on when it starts again: " + how_to_read_on(entry->id),
       ""});
}

/// Ends all present and later readers of the response with the error `why`, because no more events
/// will come.
void stored_service::cut(stored_entry& entry, actors::request_error why) {
  for (const auto& one : std::exchange(entry.readers, {}))
    one->end_with(why);
  entry.cut = std::move(why);
}

/// Removes a response that must not be stored, or no longer.
void stored_service::forget(const entry_ptr& entry, actors::request_error why) {
  cut(*entry, std::move(why));
  if (entry->at == stored_entry::stage::running) around_.engine.cancel(entry->request);
  entry->asked.reset();
  entry->at = stored_entry::stage::over;
  table_.remove(*entry);
  to_drop_.push_back(entry);
}

void stored_service::add_record(const entry_ptr& entry, std::string record) {
  const auto more = static_cast<std::int64_t>(sizeof record + record.size());
  entry->bytes->records.push_back(std::move(record));
  table_.set_room(*entry, entry->room + more);
  if (!entry->changed) changed_.push_back(entry);
  entry->changed = true;
  if (!table_.make_room(entry->tenant, 0, to_drop_) && table_.outgrown(*entry) &&
      entry->at == stored_entry::stage::running)
    end(entry, actors::errc::too_large,
        "the response has outgrown the room for stored ones (`responses.max_folder`, or "
        "`responses.max_memory` without a folder); send `store: false`, or ask for less");
}

void stored_service::end(const entry_ptr& entry, actors::errc code, std::string message) {
  if (entry->at == stored_entry::stage::running) around_.engine.cancel(entry->request);
  entry->at = stored_entry::stage::over;
  entry->asked.reset();
  entry->cut.reset(); // the last record now is the end of the response
  actors::event ev;
  ev.error = actors::request_error{code, std::move(message), ""};
  ev.last = true;
  add_record(entry, write_record(ev));
}

void stored_service::cancel_wanted() {
  for (const auto& entry : std::exchange(to_cancel_, {})) {
    // This includes a response that the next process would resume.
    if (entry->at != stored_entry::stage::over && !entry->forgotten)
      end(entry, actors::errc::cancelled, "the response was cancelled");
  }
}

/// Ends the responses that lost an event because there was no memory for it.
void stored_service::end_holed() {
  for (const auto& [id, entry] : live_)
    if (entry->lost_event && entry->at == stored_entry::stage::running)
      end(entry, actors::errc::executor_failed, "out of memory");
}

/// Writes all new responses and records to the journal with one write.
bool stored_service::write_down() {
  if (folder_ == nullptr) return true;
  stored_folder::step step;
  for (const auto& entry : beginning_)
    step.begins.push_back({&entry->id, &entry->bytes->head});
  for (const auto& entry : changed_)
    for (auto i = entry->n_written; i < entry->bytes->records.size(); ++i)
      step.records.push_back({&entry->id, &entry->bytes->records[i]});
  if (step.begins.empty() && step.records.empty()) return true;
  const auto error = folder_->append(step);
  if (error) note_failure("the journal takes nothing", error);
  return !error;
}

void stored_service::show_written(bool written) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : std::exchange(beginning_, {})) {
    entry->begun = written;
    if (entry->forgotten) continue;
    if (!written) {
      entry->changed = false;
      std::erase(changed_, entry);
      forget(entry, {actors::errc::not_stored,
                     "the disk of `responses.folder` takes nothing; send `store: false`, or retry "
                     "later",
                     ""});
      continue;
    }
    for (const auto& one : entry->readers)
      one->on_begun(entry->n_shown);
    drop_ended(*entry);
    if (entry->at == stored_entry::stage::beginning && !stopped_) submit(entry);
  }
  for (const auto& entry : std::exchange(changed_, {})) {
    entry->changed = false;
    entry->n_shown = entry->bytes->records.size();
    if (written) entry->n_written = entry->n_shown;
    for (const auto& one : entry->readers)
      feed(*one);
    drop_ended(*entry);
    if (entry->at == stored_entry::stage::over && !entry->forgotten) note_over(entry);
  }
}

void stored_service::note_over(const entry_ptr& entry) {
  set_over(*entry);
  to_finish_.push_back(entry);
}

void stored_service::set_over(stored_entry& entry) {
  table_.set_over(entry);
  next_expiry_unix_s_ = std::min(next_expiry_unix_s_, table_.expiry_of(entry));
}

void stored_service::submit(const entry_ptr& entry) {
  auto asked = std::move(*entry->asked);
  entry->asked.reset();
  entry->at = stored_entry::stage::running;
  entry->request = around_.engine.submit(
      std::move(asked), [to = inbox_, entry](actors::event ev) { to->push(entry, std::move(ev)); });
}

/// Writes the files of responses that are over.
void stored_service::finish_files() {
  auto over = std::exchange(to_finish_, {});
  if (clock::now() >= next_retry_) {
    over.insert(over.end(), unfinished_.begin(), unfinished_.end());
    unfinished_.clear();
  }
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(over, [](const entry_ptr& entry) { return entry->forgotten; });
  }
  for (const auto& entry : over) {
    if (folder_ != nullptr) {
      if (const auto error = folder_->finish(*entry->bytes)) {
        note_failure("a response that is over has no file yet", error);
        entry->maybe_on_disk = true;
        next_retry_ = clock::now() + stored_retry_after;
        // Writing the file is retried only for responses that are in the journal. Responses of
        // add_finished() come from a batch, which has many of them and has already given its user
        // the results.
        if (entry->begun)
          unfinished_.push_back(entry);
        else
          give_up(entry);
        continue;
      }
    }
    live_.erase(entry->id);
    if (folder_ == nullptr) continue;
    const std::lock_guard lock(mutex_);
    entry->on_disk = true;
    if (entry->readers.empty())
      release(*entry);
    else
      hold_for_readers(entry);
  }
}

void stored_service::give_up(const entry_ptr& entry) {
  const std::lock_guard lock(mutex_);
  if (!entry->forgotten)
    forget(entry, {actors::errc::not_stored, "the disk of `responses.folder` takes nothing", ""});
}

/// Frees the memory of a response that has a file and no reader.
void stored_service::release(stored_entry& entry) {
  if (!entry.on_disk) return;
  entry.bytes.reset();
}

/// Removes the files and the entries in the journal of responses that were forgotten.
void stored_service::drop_files() {
  std::vector<entry_ptr> gone;
  if (clock::now() >= next_retry_) gone.swap(dropping_);
  {
    const std::lock_guard lock(mutex_);
    gone.insert(gone.end(), to_drop_.begin(), to_drop_.end());
    to_drop_.clear();
  }
  for (const auto& entry : gone) {
    live_.erase(entry->id);
    if (folder_ == nullptr) continue;
    if (!entry->on_disk && entry->begun) {
      folder_->forget(entry->id);
      entry->begun = false;
    }
    if (!entry->on_disk && !entry->maybe_on_disk) continue;
    const auto error = folder_->erase(entry->id);
    if (!error || error == std::errc::no_such_file_or_directory) continue;
    note_failure("the file of a response that was removed is still there, and is removed later",
                 error);
    next_retry_ = clock::now() + stored_retry_after;
    dropping_.push_back(entry);
  }
}

/// Rewrites the journal with exactly those records (stored events) of running responses that the
/// journal already has. Later records are written by the next append().
std::error_code stored_service::tidy(clock::time_point now) {
  stored_bytes written; // used for a response whose last records are not in the journal yet
  return folder_->tidy(now, [&](const std::string& id) -> const stored_bytes* {
    const auto found = live_.find(id);
    if (found == live_.end()) return nullptr;
    const auto& entry = *found->second;
    const auto& records = entry.bytes->records;
    if (entry.n_written == records.size()) return entry.bytes.get();
    written = {entry.id, entry.bytes->head, {}};
    written.records.assign(records.begin(),
                           records.begin() + static_cast<std::ptrdiff_t>(entry.n_written));
    return &written;
  });
}

void stored_service::look_after(clock::time_point now) {
  if (folder_ != nullptr) {
    if (const auto error = tidy(now)) note_failure("the journal cannot be written anew", error);
  }
  const auto now_unix_s = unix_ms() / 1000;
  const std::lock_guard lock(mutex_);
  if (now_unix_s >= next_expiry_unix_s_) {
    std::vector<entry_ptr> expired;
    table_.expire(now_unix_s, expired);
    for (const auto& one : expired)
      cut(*one, {actors::errc::not_stored, "the time of the response is over", ""});
    to_drop_.insert(to_drop_.end(), expired.begin(), expired.end());
    next_expiry_unix_s_ = table_.next_expiry_unix_s();
  }
  auto next = clock::time_point::max();
  if (next_expiry_unix_s_ != std::numeric_limits<std::int64_t>::max())
    next = now + std::min<seconds>(seconds(next_expiry_unix_s_ - now_unix_s), longest_rest);
  const bool tidies = folder_ != nullptr && folder_->has_dead_bytes();
  if (!to_finish_.empty()) next = now;
  if (!unfinished_.empty() || !dropping_.empty() || tidies)
    next = std::min(next, now + stored_retry_after);
  const auto go_on_after = is_loading() ? loading_poll : milliseconds(stored_retry_after);
  if (!to_go_on_.empty()) next = std::min(next, now + go_on_after);
  if (!to_drop_.empty()) next = now;
  for (const auto& [id, entry] : live_) {
    if (entry->leave_at <= now) {
      to_cancel_.push_back(entry);
      entry->leave_at = clock::time_point::max();
      next = now;
    }
    next = std::min(next, entry->leave_at);
  }
  next_look_ = next;
}

void stored_service::note_failure(const std::string& what, const std::error_code& error) {
  const auto now = clock::now();
  const std::lock_guard lock(mutex_);
  ++write_failures_;
  if (now < next_warning_) return;
  next_warning_ = now + warn_again_after;
  log::warn("`responses.folder`: " + what + ": " + error.message());
}

} // namespace twill::net
