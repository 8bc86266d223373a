// stored_table: the index of all stored responses, with their tenants and the bytes that they take
// of the allowed total (the room).
//
// Each tenant has an equal share of the room for its own responses. Not thread-safe: the owner
// must lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "config/base/ledger.hpp"
#include "net/stored/stored_bytes.hpp"
#include "net/stored/stored_head.hpp"

namespace twill::net {

class stored_reader;

/// One stored response. The members that are not marked as constant belong to the stored_service
/// and are guarded by its mutex.
struct stored_entry {
  enum class stage {
    beginning, ///< not submitted to the engine yet
    running,
    interrupted, ///< the next process resumes it
    over,
  };

  std::string id, tenant;            ///< constant
  std::int64_t created_unix_s = 0;   ///< constant
  bool background = false;           ///< constant: the response continues when nobody reads it
  std::int32_t n_choices = 1;        ///< constant
  std::int64_t deadline_unix_ms = 0; ///< constant: a copy of the head's value
  /// The head (what was requested, see stored_head) and the records (the events) of the response.
  /// Null once the response is over, is in the folder, and has no reader. The content does not
  /// change once the response is over. The head is kept as text, since a parsed head may take
  /// twenty times the memory.
  std::shared_ptr<stored_bytes> bytes;
  stage at = stage::beginning;
  std::int64_t room = 0;               ///< bytes that count towards its tenant's share
  std::size_t n_shown = 0;             ///< number of records that readers may get
  std::size_t n_written = 0;           ///< number of records in the journal
  bool begun = false;                  ///< the head is in the journal
  bool on_disk = false;                ///< the response has its own file
  bool maybe_on_disk = false;          ///< writing its file has failed, and may have left a file
  std::atomic<bool> lost_event{false}; ///< there was no memory for one of its events
  bool forgotten = false;              ///< removed from the table
  bool started = false;                ///< its records show that the engine has started the request
  bool changed = false;                ///< some of its records have not been shown to readers yet
  /// True if an earlier process began the response and the journal records that this process
  /// resumes it.
  bool resumed = false;
  /// True if this process has submitted the resumed request and the engine has not sent an event of
  /// it yet.
  bool resuming = false;
  /// The request, until it is submitted to the engine.
  std::optional<actors::request> asked;
  /// The request's id in the engine while `at` is running.
  actors::request_id request = 0;
  /// The readers that have not got their last event.
  std::vector<std::shared_ptr<stored_reader>> readers;
  /// The error that new readers get instead of events; empty: they get the events.
  std::optional<actors::request_error> cut;
  /// When the response is cancelled if no reader comes before.
  std::chrono::steady_clock::time_point leave_at = std::chrono::steady_clock::time_point::max();
};

using stored_entry_ptr = std::shared_ptr<stored_entry>;

/// Makes an entry whose constant members are copied from `head`.
stored_entry_ptr entry_of(const stored_head& head);

class stored_table {
public:
  struct limits {
    std::int64_t max_bytes = 0;
    std::chrono::seconds keep{0};
    std::function<std::size_t()> tenants; ///< how many tenants share max_bytes now
  };
  explicit stored_table(limits l) : limits_(std::move(l)) {}

  /// Returns null if the tenant has no such response.
  stored_entry_ptr find(const std::string& id, const std::string& tenant) const;
  void add(const stored_entry_ptr& entry);
  /// Changes the room that the entry takes.
  void set_room(stored_entry& entry, std::int64_t bytes);
  /// Marks the entry as over, so that make_room() and expire() may remove it.
  void set_over(stored_entry& entry);
  void remove(stored_entry& entry);

  /// Removes the tenant's oldest finished responses that have no readers, until there is room for
  /// `bytes` more, and appends them to `out`. Returns false, and removes nothing, if that would not
  /// make enough room.
  bool make_room(const std::string& tenant, std::int64_t bytes, std::vector<stored_entry_ptr>& out);
  /// Removes finished responses that are older than limits::keep, and appends them to `out`.
  void expire(std::int64_t now_unix_s, std::vector<stored_entry_ptr>& out);
  /// When expire() will have something to remove; the largest number means never.
  std::int64_t next_expiry_unix_s() const;
  std::int64_t expiry_of(const stored_entry& entry) const {
    return entry.created_unix_s + limits_.keep.count();
  }
  std::chrono::seconds keep() const { return limits_.keep; }
  /// Whether the entry alone takes more than its tenant's share.
  bool outgrown(const stored_entry& entry) const { return entry.room > part(); }
  std::vector<stored_entry_ptr> all() const;
  std::int64_t bytes() const { return bytes_; }
  /// Reports to the ledger how much room the responses take.
  void account(ledger& to) const;

private:
  struct holding {
    std::unordered_map<std::string, stored_entry_ptr> by_id;
    std::list<stored_entry*> over; ///< oldest first
    std::unordered_map<const stored_entry*, std::list<stored_entry*>::iterator> place;
    std::int64_t bytes = 0;
    std::int64_t bytes_over = 0;
  };

  std::int64_t part() const;
  void take_out(holding& from, stored_entry& entry);

  const limits limits_;
  std::map<std::string, holding, std::less<>> tenants_;
  std::int64_t bytes_ = 0;
};

} // namespace twill::net
