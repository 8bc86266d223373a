// stored_service: manages stored responses. It takes the events of running ones from the engine,
// writes them to disk and delivers them to readers; it also keeps the finished ones.
//
// A reader gets all events of its response from the first one on, whenever it starts to read. A
// response has at most 64 readers at once. Finished responses that stay in memory for paused
// readers share `responses.max_memory`. If there is a folder, an event is delivered only after the
// journal's write() of it. If the disk fails after a response has begun, the response continues in
// memory and is written once the disk works again. A response without readers is cancelled after
// `responses.grace`, unless it is a background response.
// Each tenant has an equal share of the room (`responses.max_folder`, or `max_memory` without a
// folder). Responses of other tenants never take from that share, so that no tenant can find out
// what another one stores.
//
// Threads: any thread may call any function. The service has one thread, the keeper, which takes
// the engine's events and is the only thread that writes to the folder. Only cancel() and erase()
// wait for the keeper. Event sources of this service must not be used after its destruction, but
// may be used after stop().
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "config/options.hpp"
#include "net/api_error.hpp"
#include "net/stored/stored_inbox.hpp"
#include "net/stored/stored_reader.hpp"
#include "net/stored/stored_table.hpp"

namespace twill::net {

class file_ops;
class stored_folder;

class stored_service {
public:
  using clock = std::chrono::steady_clock;

  struct surroundings {
    actors::engine_port& engine;
    config::response_options options;
    std::function<std::size_t()> tenants; ///< how many tenants there are now
    /// The longest time that a request may take; 0: no limit.
    std::function<std::chrono::milliseconds()> request_timeout;
    /// Builds the request of a stored response again from its head, to continue it after a restart.
    std::function<result<actors::request>(const stored_head&)> ask_again;
    file_ops* files = nullptr; ///< null: system_files()
  };
  struct view {
    std::shared_ptr<const stored_head> head;
    std::shared_ptr<const stored_bytes> bytes; ///< its records so far; do not change
    bool running = false;
  };

  /// Reads the folder. Throws std::runtime_error if the folder cannot be used.
  explicit stored_service(surroundings around);
  ~stored_service();
  stored_service(const stored_service&) = delete;
  stored_service& operator=(const stored_service&) = delete;

  /// Makes a new response of `head.tenant`, which begins when the returned source is started. Fails
  /// with errc::storage_full if the tenant's running responses take the tenant's whole share of
  /// `responses.max_folder` (without a folder: of `max_memory`).
  /// If the engine refuses the request at once, the response is not kept, unless it is a background
  /// response. The source of a background response delivers an empty event first, once the
  /// beginning of the response is in the journal. With `only_begin`, which is allowed only for
  /// background responses, the empty event is also the last one.
  result<std::shared_ptr<event_source>> begin(stored_head head, actors::request asked,
                                              bool only_begin = false);
  /// Stores a finished response whose events this service did not take, such as a reply in a batch,
  /// if the tenant's share of the storage has room for it.
  void add_finished(stored_head head, std::vector<std::string> records);

  /// Returns a source that delivers an empty event and then all events of the response from the
  /// first one on. Returns nothing if the tenant has no such response.
  std::optional<followed_response> follow(const std::string& id, const std::string& tenant);
  std::optional<view> find(const std::string& id, const std::string& tenant) const;
  /// How many bytes of its tenant's share of the storage the response takes; this estimates the
  /// cost of reading it. Returns 0 if there is no such response.
  std::int64_t room_of_response(const std::string& id, const std::string& tenant) const;
  /// Ends the response with errc::cancelled if it is still running, and returns when it has ended.
  /// Returns false if the tenant has no such response.
  bool cancel(const std::string& id, const std::string& tenant);
  /// Deletes the response, after ending it if it is still running. Returns when its file is removed
  /// and the journal says that the response has ended, or when the disk has refused that; in the
  /// latter case the service repeats the deletion until it succeeds. Returns false if the tenant
  /// has no such response.
  bool erase(const std::string& id, const std::string& tenant);

  /// Call this when the server begins to shut down. It does nothing without a folder. From then on,
  /// a response whose last reader leaves is not cancelled but interrupted, which means that it
  /// continues when the server starts again. Running responses without readers are interrupted at
  /// once.
  void hand_over();
  /// Stops the keeper, which is the thread of this service, cancels all requests that still run in
  /// the engine, and wakes all callers that wait for the keeper. Afterwards the service accepts no
  /// responses.
  void stop();

  std::int64_t bytes() const;
  std::uint64_t write_failures() const;

  /// Reports to the ledger how much room the responses take. Any thread may call this.
  void account(ledger& to) const;

private:
  friend class stored_reader;
  using entry_ptr = stored_entry_ptr;
  using reader_ptr = std::shared_ptr<stored_reader>;

  // Called by stored_reader.
  void start(const reader_ptr& by);
  void leave(const reader_ptr& by);
  void end(const reader_ptr& by);
  void pump(stored_reader& one);
  void feed(stored_reader& one);

  // Called by the keeper, which holds `mutex_`.
  void take(const entry_ptr& entry, actors::event&& ev);
  void add_record(const entry_ptr& entry, std::string record);
  void end(const entry_ptr& entry, actors::errc code, std::string message);
  void interrupt(const entry_ptr& entry);
  void go_on_later(const entry_ptr& entry);
  void cancel_wanted();
  void end_holed();
  void submit(const entry_ptr& entry);
  void forget(const entry_ptr& entry, actors::request_error why);
  void cut(stored_entry& entry, actors::request_error why);
  void drop_ended(stored_entry& entry);
  void hold_for_readers(const entry_ptr& entry);
  void release(stored_entry& entry);
  void note_over(const entry_ptr& entry);
  void set_over(stored_entry& entry);
  std::future<void> await_keeper();
  std::shared_ptr<stored_bytes> copy_of(const stored_bytes& from, std::size_t n) const;
  std::shared_ptr<stored_bytes> read_file(const std::string& id) const;
  // Called by the keeper without `mutex_`.
  void run();
  bool write_down();
  void show_written(bool written);
  void finish_files();
  void give_up(const entry_ptr& entry);
  void drop_files();
  std::error_code tidy(clock::time_point now);
  void look_after(clock::time_point now);
  void recover();
  void remove_damaged(const std::string& id);
  bool is_loading() const;
  void go_on();
  bool go_on_with(const entry_ptr& entry);
  void note_failure(const std::string& what, const std::error_code& error);

  const surroundings around_;
  std::shared_ptr<stored_inbox> inbox_ = std::make_shared<stored_inbox>();
  mutable std::mutex mutex_;
  // `mutex_` guards all members below, except those that only the keeper uses.
  stored_table table_;
  std::vector<entry_ptr> to_begin_;
  std::vector<entry_ptr> to_cancel_;
  /// Finished responses that have files and stay in memory only for their readers; oldest first.
  std::vector<entry_ptr> held_;
  /// Removed responses whose file or entries in the journal still exist.
  std::vector<entry_ptr> to_drop_;
  /// One promise for each caller that waits until the keeper has done its work.
  std::vector<std::promise<void>> waiting_;
  clock::time_point next_look_ = clock::time_point::max();
  std::int64_t next_expiry_unix_s_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t write_failures_ = 0;
  bool handing_over_ = false;
  bool stopped_ = false;

  // The members from here to `next_warning_` are used only by the keeper thread.
  /// Null: everything stays in memory. Exception: any thread may call folder_->read().
  std::unique_ptr<stored_folder> folder_;
  std::vector<entry_ptr> beginning_;
  std::vector<entry_ptr> changed_;
  /// Finished responses that do not have their own files yet.
  std::vector<entry_ptr> to_finish_;
  /// Finished responses whose files the disk has refused.
  std::vector<entry_ptr> unfinished_;
  /// When operations that the disk has refused are repeated.
  clock::time_point next_retry_{};
  /// Removed responses whose files must still be removed.
  std::vector<entry_ptr> dropping_;
  /// Responses of an earlier process that must be resumed.
  std::vector<entry_ptr> to_go_on_;
  /// Responses that do not have their own files, by id.
  std::unordered_map<std::string, entry_ptr> live_;
  clock::time_point next_go_on_{};
  clock::time_point next_warning_{};
  std::thread thread_;
};

} // namespace twill::net
