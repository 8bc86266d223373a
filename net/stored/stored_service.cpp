#include "net/stored/stored_service.hpp"

#include <algorithm>
#include <random>

#include "config/base/log.hpp"
#include "net/stored/stored_api.hpp"
#include "net/stored/stored_folder.hpp"
#include "net/stored/stored_record.hpp"
#include "net/stored/stored_units.hpp"

namespace twill::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t random_seed() {
  std::random_device source;
  return std::uint64_t{source()} << 32 | source();
}

constexpr std::size_t most_readers = 64; ///< readers of one response at the same time

api_error no_room(const config::response_options& options) {
  return {errc::storage_full,
          options.folder.empty()
              ? "stored responses under way fill `responses.max_memory`; send `store: false`, or "
                "retry when some have ended"
              : "stored responses under way fill `responses.max_folder`; send `store: false`, or "
                "retry when some have ended",
          ""};
}

/// Parses the head for one reader. Returns null if the head has another id or tenant.
std::shared_ptr<const stored_head> head_in(const stored_bytes& bytes, const std::string& id,
                                           const std::string& tenant) {
  auto head = read_head(bytes.head);
  if (!head || head->id != id || head->tenant != tenant) return nullptr;
  return std::make_shared<const stored_head>(std::move(*head));
}

} // namespace

stored_service::stored_service(surroundings around)
    : around_(std::move(around)),
      table_({around_.options.folder.empty() ? around_.options.max_memory_bytes
                                             : around_.options.max_folder_bytes,
              std::chrono::duration_cast<seconds>(around_.options.keep), around_.tenants}) {
  recover();
  thread_ = std::thread([this] { run(); });
}

stored_service::~stored_service() {
  stop();
}

// --- calls of other components -------------------------------------------------------------------

result<std::shared_ptr<event_source>> stored_service::begin(stored_head head, actors::request asked,
                                                            bool only_begin) {
  if (!asked.sampling.seed) asked.sampling.seed = random_seed();
  head.seed = *asked.sampling.seed;
  auto limit = asked.timeout;
  if (const auto most = around_.request_timeout(); most.count() > 0)
    limit = limit.count() > 0 ? std::min(limit, most) : most;
  if (limit.count() > 0) head.deadline_unix_ms = unix_ms() + limit.count();
  auto entry = entry_of(head);
  entry->bytes = std::make_shared<stored_bytes>(stored_bytes{head.id, write_head(head), {}});
  entry->room = room_of(*entry->bytes);
  auto source = std::make_shared<stored_reader>(*this, entry, entry->bytes, entry->n_choices,
                                                entry->background);
  source->begins_with(std::move(asked));
  if (only_begin) source->wants_only_begin();
  const std::lock_guard lock(mutex_);
  if (stopped_)
    return fail({actors::errc::shutting_down, "the server is shutting down; retry later", ""});
  if (!table_.make_room(entry->tenant, entry->room, to_drop_))
    return fail(no_room(around_.options));
  return std::shared_ptr<event_source>(std::move(source));
}

void stored_service::start(const reader_ptr& by) {
  const std::lock_guard lock(mutex_);
  if (stopped_)
    return by->end_with({actors::errc::shutting_down, "the server is shutting down", ""});
  const auto& entry = by->entry_;
  if (!by->asked_) {
    if (entry->cut) return by->end_with(*entry->cut);
    if (entry->readers.size() >= most_readers)
      return by->end_with({actors::errc::queue_full,
                           std::to_string(most_readers) +
                               " clients read this response, which is the most; retry later",
                           ""});
    entry->leave_at = clock::time_point::max();
    // Readers that come while the content is in memory share the content that the first one has
    // read.
    if (entry->bytes == nullptr) {
      entry->bytes = by->bytes_;
      entry->n_shown = entry->bytes->records.size();
    }
    by->bytes_ = entry->bytes;
    entry->readers.push_back(by);
    if (entry->on_disk) hold_for_readers(entry);
    by->begun_ = entry->begun || entry->at != stored_entry::stage::beginning;
    return pump(*by);
  }
  // Other responses may have taken the room since begin() checked it.
  if (!table_.make_room(entry->tenant, entry->room, to_drop_))
    return by->end_with({actors::errc::not_stored, no_room(around_.options).message, ""});
  entry->asked = std::move(by->asked_);
  by->asked_.reset();
  entry->readers.push_back(by);
  table_.add(entry);
  to_begin_.push_back(entry);
  inbox_->wake();
}

/// Delivers the events that a reader may have now.
void stored_service::pump(stored_reader& one) {
  feed(one);
  if (one.ended_) drop_ended(*one.entry_);
}

void stored_service::feed(stored_reader& one) {
  const auto& entry = *one.entry_;
  one.pump(entry.n_shown);
  const bool whole =
      entry.at == stored_entry::stage::over && entry.n_shown == one.bytes_->records.size();
  if (whole && one.has_all(entry.n_shown))
    one.end_with({actors::errc::executor_failed, "the stored response has no end", ""});
}

/// Called for a finished response that has a file: from now on it stays in memory only as long as
/// it has readers. If such responses take more than their tenant's share of `responses.max_memory`,
/// paused readers of that tenant are cut off, beginning with the response that has been held for
/// the longest time. Readers that are not paused finish soon and are not cut off.
void stored_service::hold_for_readers(const entry_ptr& entry) {
  if (std::find(held_.begin(), held_.end(), entry) == held_.end()) held_.push_back(entry);
  std::erase_if(held_, [](const entry_ptr& one) { return one->bytes == nullptr; });
  std::int64_t bytes = 0;
  for (const auto& one : held_)
    if (one->tenant == entry->tenant) bytes += one->room;
  const auto n_tenants = std::max<std::size_t>(1, around_.tenants());
  const auto most = around_.options.max_memory_bytes / static_cast<std::int64_t>(n_tenants);
  for (const auto& one : std::vector(held_)) {
    if (bytes <= most) return;
    if (one->tenant != entry->tenant) continue;
    const auto room = one->room;
    for (const auto& reader : std::vector(one->readers))
      if (reader->paused_)
        reader->end_with({actors::errc::slow_reader,
                          "this reader was paused while responses that are read filled the "
                          "tenant's part of `responses.max_memory`; " +
                              how_to_read_on(one->id),
                          ""});
    drop_ended(*one);
    if (one->bytes == nullptr) bytes -= room;
  }
}

/// Removes the readers that have got their last event.
void stored_service::drop_ended(stored_entry& entry) {
  std::erase_if(entry.readers, [](const reader_ptr& one) { return one->ended_; });
  if (entry.readers.empty() && entry.at == stored_entry::stage::over) release(entry);
}

void stored_service::leave(const reader_ptr& by) {
  const std::lock_guard lock(mutex_);
  if (by->ended_) return;
  by->ended_ = true;
  by->deliver_ = nullptr;
  const auto& entry = by->entry_;
  drop_ended(*entry);
  const bool runs =
      entry->at == stored_entry::stage::beginning || entry->at == stored_entry::stage::running;
  if (!runs || !entry->readers.empty() || stopped_) return;
  if (handing_over_) return interrupt(entry);
  if (entry->background) return;
  if (around_.options.grace.count() == 0) {
    to_cancel_.push_back(entry);
  } else {
    entry->leave_at = clock::now() + around_.options.grace;
    next_look_ = std::min(next_look_, entry->leave_at);
  }
  inbox_->wake();
}

std::optional<stored_service::view> stored_service::find(const std::string& id,
                                                         const std::string& tenant) const {
  std::shared_ptr<stored_bytes> from;
  std::size_t n = 0;
  bool running = false;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = table_.find(id, tenant);
    if (entry == nullptr) return std::nullopt;
    from = entry->bytes;
    n = entry->n_shown;
    // A response counts as running until its last record may be shown to readers.
    running =
        from != nullptr && !(entry->at == stored_entry::stage::over && n == from->records.size());
  }
  if (from == nullptr) from = read_file(id);
  auto head = from == nullptr ? nullptr : head_in(*from, id, tenant);
  if (head == nullptr) return std::nullopt;
  return view{std::move(head), running ? copy_of(*from, n) : std::move(from), running};
}

std::int64_t stored_service::room_of_response(const std::string& id,
                                              const std::string& tenant) const {
  const std::lock_guard lock(mutex_);
  const auto entry = table_.find(id, tenant);
  return entry == nullptr ? 0 : entry->room;
}

/// Copies the first `n` records (stored events) of a response, which do not change any more. The
/// copy is made in pieces, so that other threads do not wait long for the mutex.
std::shared_ptr<stored_bytes> stored_service::copy_of(const stored_bytes& from,
                                                      std::size_t n) const {
  constexpr std::size_t most_at_once = 256;
  auto copy = std::make_shared<stored_bytes>(stored_bytes{from.id, from.head, {}});
  copy->records.reserve(n);
  while (copy->records.size() < n) {
    const std::lock_guard lock(mutex_);
    const auto at = from.records.begin() + static_cast<std::ptrdiff_t>(copy->records.size());
    const auto more = std::min(n - copy->records.size(), most_at_once);
    copy->records.insert(copy->records.end(), at, at + static_cast<std::ptrdiff_t>(more));
  }
  return copy;
}

/// Reads a finished response that is not in memory. Returns null if it cannot be read.
std::shared_ptr<stored_bytes> stored_service::read_file(const std::string& id) const {
  auto read = folder_->read(id);
  if (!read.ok()) {
    log::warn("`responses.folder`: the stored response " + id +
              " cannot be read: " + read.code().message());
    return nullptr;
  }
  return std::make_shared<stored_bytes>(std::move(read).value());
}

std::optional<followed_response> stored_service::follow(const std::string& id,
                                                        const std::string& tenant) {
  entry_ptr entry;
  std::shared_ptr<stored_bytes> bytes;
  {
    const std::lock_guard lock(mutex_);
    entry = table_.find(id, tenant);
    if (entry == nullptr) return std::nullopt;
    bytes = entry->bytes;
  }
  if (bytes == nullptr) bytes = read_file(id);
  auto head = bytes == nullptr ? nullptr : head_in(*bytes, id, tenant);
  if (head == nullptr) return std::nullopt;
  auto source = std::make_shared<stored_reader>(*this, std::move(entry), std::move(bytes),
                                                head->n_choices, true);
  return followed_response{std::move(head), std::move(source)};
}

std::future<void> stored_service::await_keeper() {
  waiting_.emplace_back();
  inbox_->wake();
  return waiting_.back().get_future();
}

bool stored_service::cancel(const std::string& id, const std::string& tenant) {
  std::future<void> done;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = table_.find(id, tenant);
    if (entry == nullptr) return false;
    if (entry->at == stored_entry::stage::over || stopped_) return true;
    to_cancel_.push_back(entry);
    done = await_keeper();
  }
  done.wait();
  return true;
}

void stored_service::end(const reader_ptr& by) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  to_cancel_.push_back(by->entry_);
  inbox_->wake();
}

bool stored_service::erase(const std::string& id, const std::string& tenant) {
  std::future<void> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = table_.find(id, tenant);
    if (entry == nullptr || stopped_) return false;
    forget(entry, {actors::errc::cancelled, "the response was deleted", ""});
    gone = await_keeper();
  }
  gone.wait();
  return true;
}

void stored_service::hand_over() {
  const std::lock_guard lock(mutex_);
  if (folder_ == nullptr) return;
  handing_over_ = true;
  for (const auto& entry : table_.all())
    if (entry->at == stored_entry::stage::running && entry->readers.empty()) interrupt(entry);
}

void stored_service::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  inbox_->close();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  for (const auto& entry : table_.all())
    if (entry->at == stored_entry::stage::running) around_.engine.cancel(entry->request);
  for (auto& one : std::exchange(waiting_, {}))
    one.set_value();
}

std::int64_t stored_service::bytes() const {
  const std::lock_guard lock(mutex_);
  return table_.bytes();
}

std::uint64_t stored_service::write_failures() const {
  const std::lock_guard lock(mutex_);
  return write_failures_;
}

void stored_service::add_finished(stored_head head, std::vector<std::string> records) {
  auto entry = entry_of(head);
  entry->bytes =
      std::make_shared<stored_bytes>(stored_bytes{head.id, write_head(head), std::move(records)});
  entry->room = room_of(*entry->bytes);
  entry->n_shown = entry->bytes->records.size();
  entry->at = stored_entry::stage::over;
  const std::lock_guard lock(mutex_);
  if (stopped_ || !table_.make_room(entry->tenant, entry->room, to_drop_)) return;
  table_.add(entry);
  set_over(*entry);
  to_begin_.push_back(std::move(entry)); // the keeper writes its file
  inbox_->wake();
}

void stored_service::account(ledger& to) const {
  const std::lock_guard lock(mutex_);
  table_.account(to);
}

} // namespace twill::net
