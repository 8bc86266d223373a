#include "tools/twilld/reloader.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "config/base/json_text.hpp"
#include "config/base/log.hpp"
#include "config/base/value.hpp"
#include "config/needs_keys.hpp"
#include "tools/twilld/keys_file.hpp"

namespace twill::tools {
namespace {

std::string words_of(const config::key_change& change) {
  const auto what = change.before == change.after ? change.after + ", others than before"
                                                  : change.before + " -> " + change.after;
  return "`" + change.key + "` (" + what + ")";
}

std::string words_of(const std::vector<config::key_change>& changes) {
  std::string all;
  for (const auto& one : changes)
    all += (all.empty() ? "" : ", ") + words_of(one);
  return all;
}

value list_of(const std::vector<config::key_change>& changes) {
  value_list all;
  for (const auto& one : changes)
    all.emplace_back(value_object{{"key", one.key}, {"before", one.before}, {"after", one.after}});
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

constexpr std::size_t most_orders = 16;
/// How long close() waits for the thread. Reading files takes less, unless the file system hangs.
constexpr std::chrono::milliseconds close_patience{500};

/// The result of reading all files for a reload, before any of it takes effect.
struct read_anew {
  std::vector<std::string> faults;
  config::options loaded;
  std::vector<config::tenant_options> tenants; ///< includes those of `server.keys_file`
  std::map<std::string, result<std::string, file_errc>> tls_files;
};

/// Reads every file that a reload needs. This call can hang if a file system does.
read_anew read_files(const reloader::parts& from) {
  read_anew anew;
  auto loaded = config::load_files(from.paths, from.settings, from.read);
  if (!loaded.ok()) {
    anew.faults = lines_of(loaded.detail());
    return anew;
  }
  auto tenants = read_keys_file(loaded.value(), from.read);
  if (!tenants.ok()) {
    anew.faults = lines_of(tenants.detail());
    return anew;
  }
  if (config::needs_keys(from.effective) && !config::needs_keys(loaded.value())) {
    anew.faults = {"the last key cannot be taken away while the daemon runs, because everybody "
                   "would be let in; restart it if that is meant"};
    return anew;
  }
  const auto& server = from.configured.server;
  if (!server.tls_certificate.empty())
    for (const auto& path : {server.tls_certificate, server.tls_key})
      anew.tls_files.emplace(path, from.read(path));
  anew.loaded = std::move(loaded).value();
  anew.tenants = std::move(tenants).value();
  return anew;
}

/// Like read_files(), but an exception becomes a fault in the result.
read_anew try_to_read_files(const reloader::parts& from) {
  try {
    return read_files(from);
  } catch (const std::exception& error) {
    read_anew anew;
    anew.faults = {std::string("the files cannot be read: ") + error.what()};
    return anew;
  }
}

} // namespace

struct reloader::shared {
  shared(parts p, actors::engine& e, net::server& s)
      : from(std::move(p)), engine(e), server(s),
        drain_timeout(from.effective.server.drain_timeout) {}

  parts from; ///< `configured` and `effective` are the settings in force; used only by the
              ///< reloader's thread
  actors::engine& engine;
  net::server& server;
  std::atomic<std::chrono::milliseconds> drain_timeout;

  std::mutex mutex; ///< guards the members below, and is held while a reload takes effect
  std::condition_variable changed;
  std::vector<report_callback> orders;
  bool closed = false, ended = false;

  reload_report apply(read_anew anew);
};

std::string reload_report::line() const {
  if (!faults.empty()) {
    std::string all = "nothing was reloaded: ";
    for (const auto& fault : faults)
      all += (&fault == &faults.front() ? "" : "; ") + fault;
    return all;
  }
  std::string all = words_of(changed);
  if (tls) all = "the TLS certificate" + (all.empty() ? "" : ", " + all);
  return "reloaded " + (all.empty() ? "nothing" : all) +
         (needs_restart.empty() ? ""
                                : "; these changes need a restart: " + words_of(needs_restart));
}

std::string reload_report::json() const {
  value_list errors;
  for (const auto& fault : faults)
    errors.emplace_back(fault);
  return to_json(value_object{{"reloaded", faults.empty()},
                              {"changed", list_of(changed)},
                              {"needs_restart", list_of(needs_restart)},
                              {"tls_certificate", tls},
                              {"errors", std::move(errors)}});
}

reload_report reloader::shared::apply(read_anew anew) {
  if (!anew.faults.empty()) return {std::move(anew.faults), {}, {}, false};
  // Loading the certificate is the last step that can fail, so it comes before any setting changes.
  const bool tls = !anew.tls_files.empty();
  if (tls) {
    const auto fault = server.reload_certificate(
        [&anew](const std::string& path) { return anew.tls_files.at(path); });
    if (!fault.empty()) return {lines_of(fault), {}, {}, false};
  }
  auto effective = anew.loaded;
  effective.tenants = std::move(anew.tenants);
  effective = config::take_reloads(from.effective, effective);
  reload_report report;
  report.tls = tls;
  const auto configured = config::take_reloads(from.configured, anew.loaded);
  report.needs_restart = config::changes_between(configured, anew.loaded);
  // The report must show a changed key in `server.keys_file` as a change of its tenant. Therefore
  // the compared tenants include the keys of that file, while all other options are compared as
  // they are configured.
  auto before = from.configured, after = configured;
  before.tenants = from.effective.tenants;
  after.tenants = effective.tenants;
  report.changed = config::changes_between(before, after);
  // The engine is reloaded first, because it must have the limits of a new tenant before the server
  // accepts that tenant's keys.
  engine.reload(effective);
  server.reload(effective);
  log::configure(*log::level_named(effective.log.level));
  drain_timeout = effective.server.drain_timeout;
  from.configured = configured;
  from.effective = std::move(effective);
  return report;
}

reloader::reloader(parts from, actors::engine& engine, net::server& server)
    : shared_(std::make_shared<shared>(std::move(from), engine, server)),
      thread_([all = shared_] { run(all); }) {}

void reloader::run(const std::shared_ptr<shared>& all) {
  std::unique_lock lock(all->mutex);
  for (;;) {
    all->changed.wait(lock, [&] { return all->closed || !all->orders.empty(); });
    if (all->closed) break;
    const auto orders = std::exchange(all->orders, {});
    lock.unlock();
    auto anew = try_to_read_files(all->from);
    lock.lock();
    if (all->closed) break;
    const auto report = all->apply(std::move(anew));
    for (const auto& callback : orders)
      callback(report);
  }
  all->ended = true;
  all->changed.notify_all();
}

bool reloader::order(report_callback callback) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->closed || shared_->orders.size() >= most_orders) return false;
  shared_->orders.push_back(std::move(callback));
  shared_->changed.notify_all();
  return true;
}

reload_report reloader::reload(std::chrono::milliseconds patience) {
  const auto answer = std::make_shared<std::optional<reload_report>>();
  const auto all = shared_;
  if (!order([answer, &changed = all->changed](const reload_report& report) {
        *answer = report;
        changed.notify_all();
      }))
    return {{"earlier reloads have not ended; a file system may hang"}, {}, {}, false};
  std::unique_lock lock(all->mutex);
  all->changed.wait_for(lock, patience, [&] { return answer->has_value() || all->closed; });
  if (answer->has_value()) return **answer;
  return {{"reading the files takes longer than " + std::to_string(patience.count() / 1000) +
           " s and goes on; a file system may hang"},
          {},
          {},
          false};
}

std::chrono::milliseconds reloader::drain_timeout() const {
  return shared_->drain_timeout;
}

bool reloader::close() {
  std::unique_lock lock(shared_->mutex);
  shared_->closed = true;
  shared_->changed.notify_all();
  const bool ended =
      shared_->changed.wait_for(lock, close_patience, [this] { return shared_->ended; });
  lock.unlock();
  if (thread_.joinable()) ended ? thread_.join() : thread_.detach();
  return ended;
}

} // namespace twill::tools
