// stored_table: which responses are stored, whose they are, and how much room they take.
//
// Each tenant has the same part of the room for itself. Not thread-safe: its owner locks.
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

/// One response. What is not said to be constant is its service's.
struct stored_entry {
  enum class stage {
    beginning, ///< the engine has not got it yet
    running,
    interrupted, ///< it goes on with the next process
    over,
  };

  std::string id, tenant;            ///< constant
  std::int64_t created_unix_s = 0;   ///< constant
  bool background = false;           ///< constant: it goes on when nobody reads it
  std::int32_t n_choices = 1;        ///< constant
  std::int64_t deadline_unix_ms = 0; ///< constant, as in its head
  /// Null once it is over, in the folder, and has no reader; does not change once it is over. The
  /// head stays text here, since a parsed one may take twenty times the memory.
  std::shared_ptr<stored_bytes> bytes;
  stage at = stage::beginning;
  std::int64_t room = 0;               ///< that it takes of its tenant's part
  std::size_t n_shown = 0;             ///< records that readers may have
  std::size_t n_written = 0;           ///< records that the journal has
  bool begun = false;                  ///< the journal has its head
  bool on_disk = false;                ///< it has a file of its own
  bool maybe_on_disk = false;          ///< it may have one: writing it has failed somewhere
  std::atomic<bool> lost_event{false}; ///< there was no memory for one
  bool forgotten = false;              ///< it is in no table any more
  bool started = false;                ///< its records say that the engine has taken it
  bool changed = false;                ///< it has records that are not shown yet
  bool resumed = false; ///< an earlier process began it, and the journal says that this one goes on
  bool resuming = false; ///< the engine has it from this process and has not taken it yet
  std::optional<actors::request> asked;                ///< until the engine has it
  actors::request_id request = 0;                      ///< while it runs
  std::vector<std::shared_ptr<stored_reader>> readers; ///< those that wait for something
  std::optional<actors::request_error>
      cut; ///< what readers are told who come now; null: its events
  /// When it is cancelled, where nobody reads it.
  std::chrono::steady_clock::time_point leave_at = std::chrono::steady_clock::time_point::max();
};

using stored_entry_ptr = std::shared_ptr<stored_entry>;

/// An entry with what is constant.
stored_entry_ptr entry_of(const stored_head& head);

class stored_table {
public:
  struct limits {
    std::int64_t max_bytes = 0;
    std::chrono::seconds keep{0};
    std::function<std::size_t()> tenants; ///< how many share max_bytes now
  };
  explicit stored_table(limits l) : limits_(std::move(l)) {}

  /// Null where the tenant has no such response.
  stored_entry_ptr find(const std::string& id, const std::string& tenant) const;
  void add(const stored_entry_ptr& entry);
  /// It takes this much room now.
  void set_room(stored_entry& entry, std::int64_t bytes);
  /// It may go for room from now on.
  void set_over(stored_entry& entry);
  void remove(stored_entry& entry);

  /// Removes the tenant's oldest finished responses that nobody reads until `bytes` more have room.
  /// False where they would have none even then: nothing is removed.
  bool make_room(const std::string& tenant, std::int64_t bytes, std::vector<stored_entry_ptr>& out);
  /// Removes those that are kept for longer than they should be.
  void expire(std::int64_t now_unix_s, std::vector<stored_entry_ptr>& out);
  /// When expire() has something to do; the largest number: never.
  std::int64_t next_expiry_unix_s() const;
  std::int64_t expiry_of(const stored_entry& entry) const {
    return entry.created_unix_s + limits_.keep.count();
  }
  std::chrono::seconds keep() const { return limits_.keep; }
  /// Whether it alone takes more than its tenant's part.
  bool outgrown(const stored_entry& entry) const { return entry.room > part(); }
  std::vector<stored_entry_ptr> all() const;
  std::int64_t bytes() const { return bytes_; }
  /// Adds the room that its responses take. They stay.
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
