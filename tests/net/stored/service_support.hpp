// Common parts of the tests of the stored-response service: the service with a scripted engine, and
// readers that record what they get.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "net/stored/stored_folder.hpp"
#include "net/stored/stored_record.hpp"
#include "net/stored/stored_service.hpp"
#include "tests/catch.hpp"
#include "tests/net/stored/stored_support.hpp"
#include "tests/net/support/scripted_engine.hpp"

namespace twill::testing {

/// File operations that fail as the flags below say.
class refusing_files final : public net::file_ops {
public:
  std::atomic<bool> full{false};
  std::atomic<bool> keeps{false};
  std::atomic<bool> stands{false};   ///< write() waits
  std::atomic<bool> lets_one{false}; ///< one write() goes on nevertheless
  std::atomic<bool> unsynced{false}; ///< folders cannot be synced
  /// The journal opened first takes no bytes, but a journal that is written anew does.
  std::atomic<bool> journal_full{false};

  int open(int folder, const char* name, int flags) override {
    const int file = file_ops::open(folder, name, flags);
    const std::string_view named(name);
    if (named != net::journal::file_name && named != net::journal::new_name) return file;
    if (journal_ < 0) journal_ = file;
    return file;
  }
  int sync(int file) override {
    struct stat what {};
    if (!unsynced || status(file, what) != 0 || !S_ISDIR(what.st_mode)) return file_ops::sync(file);
    errno = EIO;
    return -1;
  }
  ssize_t write(int file, const void* from, std::size_t n, off_t at) override {
    while (stands && !lets_one.exchange(false))
      std::this_thread::sleep_for(1ms);
    const bool refuses = full || (journal_full && file == journal_);
    if (!refuses) return file_ops::write(file, from, n, at);
    errno = ENOSPC;
    return -1;
  }
  int remove(int folder, const char* name) override {
    if (!keeps) return file_ops::remove(folder, name);
    errno = EROFS;
    return -1;
  }

private:
  std::atomic<int> journal_{-1};
};

/// Follows a source and notes its events, each as its record.
class listener {
public:
  explicit listener(std::shared_ptr<net::event_source> from, bool takes = true)
      : source_(std::move(from)), takes_(takes) {
    source_->start([to = state_](actors::event ev) { to->add(std::move(ev)); }, "test");
  }
  ~listener() {
    if (source_ != nullptr) source_->leave();
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  net::event_source& source() { return *source_; }
  std::weak_ptr<net::event_source> watch() const { return source_; }
  /// Releases the source without leave(), like a session that has seen the last event.
  void forget() { source_.reset(); }
  void leave() {
    source_->leave();
    source_.reset();
  }
  /// Takes the events that have come, as a session does. True once the last one has come.
  bool take() {
    std::size_t more = 0;
    bool over = false;
    {
      const std::lock_guard lock(state_->mutex);
      more = state_->events.size() - taken_;
      taken_ = state_->events.size();
      over = state_->over;
    }
    for (; takes_ && more > 0; --more)
      source_->taken(1);
    return over;
  }
  bool wait_last(std::chrono::milliseconds within = 10s) {
    const auto until = std::chrono::steady_clock::now() + within;
    while (!take()) {
      std::unique_lock lock(state_->mutex);
      if (!state_->came.wait_until(lock, until,
                                   [&] { return state_->over || state_->events.size() > taken_; }))
        return false;
    }
    return true;
  }
  bool wait_events(std::size_t n, std::chrono::milliseconds within = 10s) {
    const auto until = std::chrono::steady_clock::now() + within;
    for (;;) {
      take();
      std::unique_lock lock(state_->mutex);
      if (state_->events.size() >= n) return true;
      if (!state_->came.wait_until(lock, until,
                                   [&] { return state_->events.size() > taken_ || state_->over; }))
        return false;
      if (state_->over && state_->events.size() < n) return false;
    }
  }
  /// The records of all events but those that say nothing.
  std::vector<std::string> records() const {
    const std::lock_guard lock(state_->mutex);
    std::vector<std::string> out;
    for (const auto& ev : state_->events)
      if (!net::says_nothing(ev)) out.push_back(net::write_record(ev));
    return out;
  }
  std::vector<actors::event> events() const {
    const std::lock_guard lock(state_->mutex);
    return state_->events;
  }
  std::optional<actors::errc> error() const {
    const std::lock_guard lock(state_->mutex);
    if (state_->events.empty() || !state_->events.back().error) return std::nullopt;
    return state_->events.back().error->code;
  }
  std::size_t count() const {
    const std::lock_guard lock(state_->mutex);
    return state_->events.size();
  }
  bool went_on_after_last() const {
    const std::lock_guard lock(state_->mutex);
    return state_->late;
  }

private:
  struct state {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<actors::event> events;
    bool over = false;
    bool late = false;
    void add(actors::event ev) {
      const std::lock_guard lock(mutex);
      late = late || over;
      over = over || ev.last;
      events.push_back(std::move(ev));
      came.notify_all();
    }
  };

  std::shared_ptr<net::event_source> source_;
  bool takes_;
  std::size_t taken_ = 0;
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

struct service_fixture {
  explicit service_fixture(config::response_options o = {}) : options(std::move(o)) { open(); }

  void open() {
    service = std::make_unique<net::stored_service>(net::stored_service::surroundings{
        engine, options, [this] { return tenants.load(); },
        [] { return std::chrono::milliseconds(0); },
        [this](const net::stored_head&) -> net::result<actors::request> {
          actors::request again;
          again.model = "test-model";
          again.sampling.max_tokens = max_tokens_again;
          again.prompt = actors::text_prompt{"again"};
          if (refuses_again) return fail(*refuses_again);
          return again;
        },
        &files});
  }
  /// Starts the service anew, as a new process does. What was not written is lost.
  void restart() {
    service.reset();
    open();
  }

  net::stored_head head(const std::string& id, const std::string& tenant = "",
                        bool background = false) const {
    net::stored_head h;
    h.id = id;
    h.tenant = tenant;
    h.model = "test-model";
    h.created_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
    h.background = background;
    h.asked = value_object{{"body", value_object{{"input", "hi"}}}};
    return h;
  }
  static actors::request request() {
    actors::request asked;
    asked.model = "test-model";
    asked.prompt = actors::text_prompt{"hi"};
    return asked;
  }
  std::shared_ptr<net::event_source> begin(net::stored_head h, bool only_begin = false) {
    auto asked = request();
    asked.sampling.n = h.n_choices;
    auto begun = service->begin(std::move(h), std::move(asked), only_begin);
    REQUIRE(begun.ok());
    return std::move(begun).value();
  }
  std::shared_ptr<net::event_source> follow(const std::string& id, const std::string& tenant = "") {
    auto found = service->follow(id, tenant);
    REQUIRE(found.has_value());
    return std::move(found->source);
  }
  std::vector<std::string> records(const std::string& id, const std::string& tenant = "") const {
    const auto found = service->find(id, tenant);
    if (!found) return {"none"};
    std::vector<std::string> out;
    for (const auto& record : found->bytes->records)
      if (!net::is_resume_mark(record)) out.push_back(record);
    return out;
  }
  bool is_over(const std::string& id, const std::string& tenant = "") const {
    const auto found = service->find(id, tenant);
    return found && !found->running;
  }
  bool wait_over(const std::string& id, const std::string& tenant = "") const {
    return eventually([&] { return is_over(id, tenant); });
  }
  template <class Condition>
  static bool eventually(Condition holds, std::chrono::milliseconds within = 10s) {
    const auto until = std::chrono::steady_clock::now() + within;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  scripted_engine engine;
  config::response_options options;
  std::atomic<std::size_t> tenants{1};
  std::optional<net::api_error> refuses_again;
  std::int32_t max_tokens_again = -1;
  refusing_files files;
  std::unique_ptr<net::stored_service> service;
};

/// Options that keep responses in memory, or in the files of a folder if there is one.
inline config::response_options kept_in(const scratch_folder* folder) {
  config::response_options options;
  if (folder != nullptr) options.folder = folder->path().string();
  options.sync = "never";
  return options;
}

inline script pieces(std::size_t n, std::chrono::microseconds step = 0us) {
  script s;
  s.pieces = {"a", "b", "c", "d", "e"};
  s.repeat = (n + 4) / 5;
  s.step = step;
  return s;
}

} // namespace twill::testing
