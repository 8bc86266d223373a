// batch_fixture: the batch service of a server without sockets, with a scripted engine, over a
// folder that outlives the fixture. The tasks of the service's batch thread are executed by run(),
// so that a test can end the server between any two tasks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "net/batch/batch_service.hpp"
#include "net/random_id.hpp"
#include "net/server_context.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

namespace twill::testing {

struct batch_scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / net::make_id("twill-test-");
  batch_scratch() { std::filesystem::create_directory(path); }
  ~batch_scratch() { std::filesystem::remove_all(path); }

  std::string text(const std::string& name) const {
    std::ifstream in(path / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
  }
};

/// The lines of a batch. Every fifth line is invalid and is answered in the error file.
inline std::string restart_lines(int n) {
  std::string out;
  for (int i = 0; i < n; ++i)
    out += R"({"custom_id":"r)" + std::to_string(i) +
           R"(","method":"POST","url":"/v1/completions","body":{"prompt":"x","max_tokens":)" +
           (i % 5 == 4 ? "-1" : "4") + "}}\n";
  return out;
}

class batch_fixture {
public:
  explicit batch_fixture(const std::filesystem::path& folder,
                         std::function<void(config::options&)> change = {})
      : engine_([](const actors::request&) {
          script s;
          s.step = std::chrono::microseconds(100);
          return s;
        }),
        context_(options(folder, change), engine_) {
    service.emplace(context_, net::batch_runner::thread_seam{
                                  [this](std::function<void()> work) { post(std::move(work)); },
                                  [this](std::chrono::milliseconds after) { wake(after); }});
  }
  /// Ends the service without its queued tasks, which leaves the files as kill -9 does.
  ~batch_fixture() {
    service.reset();
    tasks_.clear();
  }

  /// Runs up to `most` tasks, until done() is true. Returns false after ten seconds without that.
  bool run(const std::function<bool()>& done, int most = 1'000'000) {
    const auto until = clock::now() + std::chrono::seconds(10);
    for (int n = 0; n < most && !done(); ++n) {
      if (clock::now() > until) return false;
      if (auto task = next()) task();
      check_ledger();
    }
    return done();
  }
  void run_some(int most) {
    run([] { return false; }, most);
  }
  bool run_until_ended(const std::string& id) {
    return run([&] { return net::is_final(show(id).status); });
  }
  /// Runs the tasks that begin() and submit() have posted, and no later ones.
  void run_posted() {
    std::size_t n = 0;
    {
      const std::lock_guard lock(mutex_);
      n = tasks_.size();
    }
    run_some(static_cast<int>(n));
  }

  net::batch show(const std::string& id, const std::string& tenant = "") {
    const auto found = service->batches().find(id, tenant);
    if (!found) FAIL("there is no batch " << id);
    return *found;
  }
  std::string upload(const std::string& text, const std::string& tenant = "") {
    const auto stored = service->files().put({"", tenant, "in", "batch", 0, 0}, text);
    REQUIRE(stored.ok());
    return stored.value().id;
  }
  net::result<net::batch> create(const std::string& file, const std::string& window = "24h",
                                 const std::string& tenant = "") {
    return service->create(json(R"({"input_file_id":")" + file +
                                R"(","endpoint":"/v1/completions","completion_window":")" + window +
                                R"(","metadata":{"job":"a \"b\""}})"),
                           tenant);
  }
  /// Starts a batch of this many lines and returns its id.
  std::string start(int n_lines, const std::string& window = "24h") {
    const auto created = create(upload(restart_lines(n_lines)), window);
    REQUIRE(created.ok());
    return created.value().id;
  }
  std::string content(const std::string& file) {
    const auto in = service->files().open(file);
    if (in == nullptr) return {};
    return {std::istreambuf_iterator<char>(*in), {}};
  }
  scripted_engine& engine() { return engine_; }

  std::optional<net::batch_service> service;

private:
  using clock = std::chrono::steady_clock;

  static config::options options(const std::filesystem::path& folder,
                                 const std::function<void(config::options&)>& change) {
    config::options o;
    o.batches.folder = folder.string();
    o.batches.max_running = 3;
    if (change) change(o);
    return o;
  }
  /// No batch resource may be missing or counted twice (config/base/ledger.hpp) between any two
  /// tasks, also while batches run. While a task is queued, this is not checked, since there may be
  /// a new batch of which the batch thread does not know yet.
  void check_ledger() {
    if (std::lock_guard lock(mutex_); !tasks_.empty()) return;
    at_once_ = std::this_thread::get_id();
    service->account([](const ledger& all) {
      for (const auto& fault : all.faults())
        FAIL_CHECK(fault);
    });
    at_once_ = std::thread::id();
  }
  void post(std::function<void()> work) {
    if (at_once_ == std::this_thread::get_id()) return work();
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(work));
    posted_.notify_one();
  }
  void wake(std::chrono::milliseconds after) { due_ = clock::now() + after; }
  std::function<void()> next() {
    std::unique_lock lock(mutex_);
    posted_.wait_for(lock, std::chrono::milliseconds(20), [this] { return !tasks_.empty(); });
    if (tasks_.empty()) {
      if (clock::now() < due_) return {};
      due_ = clock::time_point::max();
      return [this] { service->on_timer(); };
    }
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  scripted_engine engine_;
  net::server_context context_;
  std::atomic<std::thread::id> at_once_{}; ///< post() runs the work of this thread at once
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;
  clock::time_point due_ = clock::time_point::max();
};

/// How often each custom_id is in a text of lines.
inline std::map<std::string, int> answers_in(const std::string& text) {
  std::map<std::string, int> found;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = text.find('\n', at);
    REQUIRE(end != text.npos); // otherwise the last line is incomplete
    const auto id = net::answered_id(text.substr(at, end - at));
    REQUIRE(id.has_value());
    ++found[*id];
    at = end + 1;
  }
  return found;
}

/// Checks that each line of a restart_lines() batch has one answer, in the right file and count.
inline void check_complete(batch_fixture& fixture, const std::string& id, int n_lines) {
  const auto ended = fixture.show(id);
  CHECK(ended.status == net::batch_status::completed);
  CHECK(ended.total == n_lines);
  CHECK(ended.completed == n_lines - n_lines / 5);
  CHECK(ended.failed == n_lines / 5);
  const auto good = answers_in(fixture.content(ended.output_file_id));
  const auto bad = answers_in(fixture.content(ended.error_file_id));
  CHECK(good.size() + bad.size() == static_cast<std::size_t>(n_lines));
  for (int i = 0; i < n_lines; ++i) {
    const auto& all = i % 5 == 4 ? bad : good;
    const auto found = all.find("r" + std::to_string(i));
    INFO("line " << i);
    CHECK((found != all.end() && found->second == 1));
  }
}

} // namespace twill::testing
