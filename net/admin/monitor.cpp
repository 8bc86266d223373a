#include "net/admin/monitor.hpp"

#include "net/metrics.hpp"

namespace twill::net {
namespace {

std::string history_frame(const metrics_history& history, const server_snapshot& newest) {
  std::string text;
  json_writer json(text);
  json.begin_object().field("type", "history").field("version", TWILL_VERSION);
  json.key("columns").begin_array();
  for (const auto name : history_columns)
    json.add(name);
  json.end_array();
  write_bounds(json, newest.stats);
  history.write(json);
  json.end_object();
  return text;
}

} // namespace

void monitor::sample(std::int64_t unix_ms) {
  server_snapshot now;
  now.state = engine_.state();
  now.detail = engine_.state_detail();
  now.models = engine_.models();
  now.stats = engine_.stats_of_models();
  now.tenants = engine_.tenants();
  now.row =
      make_history_row(unix_ms, now.stats, read_process_memory().resident_bytes, open_sockets_());
  std::vector<waker> all;
  {
    const std::lock_guard lock(mutex_);
    now.number = newest_.number + 1;
    history_.add(now.row);
    newest_ = std::move(now);
    text_.reset();
    for (const auto& [id, wake] : wakers_)
      all.push_back(wake);
  }
  for (const auto& wake : all)
    wake();
}

monitor::frame monitor::history() const {
  const std::lock_guard lock(mutex_);
  return {newest_.number, std::make_shared<const std::string>(history_frame(history_, newest_))};
}

monitor::frame monitor::latest() const {
  const std::lock_guard lock(mutex_);
  if (newest_.number == 0) return {};
  if (text_ == nullptr) text_ = std::make_shared<const std::string>(sample_frame(newest_));
  return {newest_.number, text_};
}

monitor::subscription monitor::subscribe(waker wake) {
  const std::lock_guard lock(mutex_);
  const auto id = next_id_++;
  wakers_.emplace(id, std::move(wake));
  return {*this, id};
}

std::size_t monitor::subscribers() const {
  const std::lock_guard lock(mutex_);
  return wakers_.size();
}

void monitor::leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  wakers_.erase(id);
}

} // namespace twill::net
