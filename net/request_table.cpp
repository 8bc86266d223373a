#include "net/request_table.hpp"

#include <mutex>

namespace twill::net {

struct request_table::inbox {
  std::mutex mutex;
  std::vector<std::pair<key, actors::event>> events;
  std::function<void()> wake; ///< empty once the session has closed

  void push(key from, actors::event ev) {
    const std::lock_guard lock(mutex);
    if (!wake) return;
    events.emplace_back(from, std::move(ev));
    if (events.size() == 1) wake();
  }
};

request_table::request_table(actors::engine_port& engine, std::function<void()> wake)
    : engine_(engine), inbox_(std::make_shared<inbox>()) {
  inbox_->wake = std::move(wake);
}

request_table::~request_table() {
  close();
}

request_table::key request_table::start(actors::request what) {
  const key made = ++last_key_;
  auto& e = requests_[made];
  e.id = engine_.submit(std::move(what),
                        [to = inbox_, made](actors::event ev) { to->push(made, std::move(ev)); });
  if (socket_slow_) set_paused(e, slow_socket);
  return made;
}

void request_table::cancel(key which) {
  const auto found = requests_.find(which);
  if (found == requests_.end()) return;
  const auto id = found->second.id;
  requests_.erase(found);
  engine_.cancel(id);
}

void request_table::cancel_all() {
  const auto all = std::exchange(requests_, {});
  for (const auto& entry : all)
    engine_.cancel(entry.second.id);
}

void request_table::pause(key which, pause_reason why) {
  if (const auto found = requests_.find(which); found != requests_.end())
    set_paused(found->second, found->second.paused | why);
}

void request_table::resume(key which, pause_reason why) {
  if (const auto found = requests_.find(which); found != requests_.end())
    set_paused(found->second, found->second.paused & ~static_cast<unsigned>(why));
}

void request_table::pause_all() {
  socket_slow_ = true;
  for (auto& entry : requests_)
    set_paused(entry.second, entry.second.paused | slow_socket);
}

void request_table::resume_all() {
  socket_slow_ = false;
  for (auto& entry : requests_)
    set_paused(entry.second, entry.second.paused & ~static_cast<unsigned>(slow_socket));
}

void request_table::set_paused(entry& e, unsigned paused) {
  const bool was = e.paused != 0;
  e.paused = paused;
  if (was == (paused != 0)) return;
  if (paused != 0)
    engine_.pause(e.id);
  else
    engine_.resume(e.id);
}

std::vector<std::pair<request_table::key, actors::event>> request_table::take_events() {
  std::vector<std::pair<key, actors::event>> arrived;
  {
    const std::lock_guard lock(inbox_->mutex);
    arrived.swap(inbox_->events);
  }
  std::erase_if(arrived, [this](const auto& one) { return !requests_.contains(one.first); });
  for (const auto& [from, ev] : arrived)
    if (ev.last) requests_.erase(from);
  return arrived;
}

void request_table::close() {
  {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->wake = nullptr;
    inbox_->events.clear();
  }
  cancel_all();
}

} // namespace twill::net
