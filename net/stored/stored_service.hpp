// stored_service: responses that are stored: those under way, whose events it takes from the
// engine, writes down and hands to whoever reads them, and those that are over.
//
// A reader gets all events of its response from the first on, whenever it comes; a response has at
// most 64 readers at once, and paused ones share `responses.max_memory`. Each event leaves
// after it was given to the journal's write(), where there is a folder; where the disk fails then,
// what runs goes on from memory and is written down once the disk takes it. A response without
// readers is cancelled after `responses.grace`, unless it is one of the background.
// Each tenant has an equal part of the room (`responses.max_folder`, or `max_memory` without a
// folder), which nobody else's responses take, so that no tenant can see what another stores.
//
// Threads: any thread may call any function. A thread of its own (the keeper) takes the engine's
// events, and alone writes to the folder. Nothing but cancel() and erase() waits for it. Sources
// must not be used after the service's end, but may be after stop().
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
    std::function<std::size_t()> tenants; ///< how many there are now
    /// How long a request may take; 0: there is no limit.
    std::function<std::chrono::milliseconds()> request_timeout;
    /// Reads anew what a stored response was asked, to go on with it after a restart.
    std::function<result<actors::request>(const stored_head&)> ask_again;
    file_ops* files = nullptr; ///< null: the operating system's
  };
  struct view {
    std::shared_ptr<const stored_head> head;
    std::shared_ptr<const stored_bytes> bytes; ///< its records so far
    bool running = false;
  };

  /// Reads what the folder has. Throws std::runtime_error where it cannot be used.
  explicit stored_service(surroundings around);
  ~stored_service();
  stored_service(const stored_service&) = delete;
  stored_service& operator=(const stored_service&) = delete;

  /// A new response of `head.tenant`; it begins when the source starts. errc::storage_full where
  /// the tenant's part of the room is taken by what runs. What the engine refuses at once is not
  /// kept, unless it is of the background: then the source's first event says nothing, and comes
  /// once the response is written down. With `only_begin`, of the background alone, it is the last.
  result<std::shared_ptr<event_source>> begin(stored_head head, actors::request asked,
                                              bool only_begin = false);
  /// Keeps a response whose events somebody else has taken, where there is room.
  void add_finished(stored_head head, std::vector<std::string> records);

  /// The events of a response from the first on, after one that says nothing; nothing where the
  /// tenant has no such response.
  std::optional<followed_response> follow(const std::string& id, const std::string& tenant);
  std::optional<view> find(const std::string& id, const std::string& tenant) const;
  /// How much it takes of its tenant's part, to weigh the work of reading it; 0: there is none.
  std::int64_t room_of_response(const std::string& id, const std::string& tenant) const;
  /// Ends it with errc::cancelled, if it still runs, and returns once it has ended. False where the
  /// tenant has no such response.
  bool cancel(const std::string& id, const std::string& tenant);
  /// Forgets it, and ends it first if it still runs. Returns once its file is gone, or what the
  /// journal has of it is dead, or the disk refused this and it is tried again until it is done;
  /// false where the tenant has no such response.
  bool erase(const std::string& id, const std::string& tenant);

  /// The server ends: whoever leaves from now on leaves because of that, so that nothing is
  /// cancelled. What goes on with the next start, and nobody reads, ends here.
  void hand_over();
  /// Ends what runs, and lets nobody wait any longer. Nothing happens afterwards.
  void stop();

  std::int64_t bytes() const;
  std::uint64_t write_failures() const;

  /// Adds the room that its responses take. Any thread.
  void account(ledger& to) const;

private:
  friend class stored_reader;
  using entry_ptr = stored_entry_ptr;
  using reader_ptr = std::shared_ptr<stored_reader>;

  // For readers.
  void start(const reader_ptr& by);
  void leave(const reader_ptr& by);
  void end(const reader_ptr& by);
  void pump(stored_reader& one);
  void feed(stored_reader& one);

  // The keeper's, under the mutex.
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
  // The keeper's, without it.
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
  // All below is guarded, but for what the keeper alone uses.
  stored_table table_;
  std::vector<entry_ptr> to_begin_;
  std::vector<entry_ptr> to_cancel_;
  std::vector<entry_ptr> held_;    ///< over, with files, in memory for readers; oldest first
  std::vector<entry_ptr> to_drop_; ///< files and journal still have them
  std::vector<std::promise<void>> waiting_; ///< for the keeper to do what was asked before
  clock::time_point next_look_ = clock::time_point::max();
  std::int64_t next_expiry_unix_s_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t write_failures_ = 0;
  bool handing_over_ = false;
  bool stopped_ = false;

  // The keeper's own.
  std::unique_ptr<stored_folder> folder_; ///< null: in memory; read() by any thread
  std::vector<entry_ptr> beginning_;
  std::vector<entry_ptr> changed_;
  std::vector<entry_ptr> to_finish_;                ///< over, and not yet in files of their own
  std::vector<entry_ptr> unfinished_;               ///< as these, which the disk did not take
  clock::time_point next_retry_{};                  ///< of what the disk did not do
  std::vector<entry_ptr> dropping_;                 ///< whose files are still to be removed
  std::vector<entry_ptr> to_go_on_;                 ///< those of an earlier process
  std::unordered_map<std::string, entry_ptr> live_; ///< by id: those without a file of their own
  clock::time_point next_go_on_{};
  clock::time_point next_warning_{};
  std::thread thread_;
};

} // namespace twill::net
