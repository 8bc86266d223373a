#include "net/connection/engine_requests.hpp"

#include <atomic>
#include <mutex>
#include <new>
#include <utility>

namespace twill::net {

struct engine_requests::inbox {
  std::mutex mutex;
  std::vector<std::pair<key, actors::event>> events;
  std::function<void()> wake; ///< empty once the session has closed
  bool lost = false;          ///< an event was dropped for lack of memory

  void push(key from, actors::event ev) {
    const std::lock_guard lock(mutex);
    if (!wake) return;
    try {
      events.emplace_back(from, std::move(ev));
      // Without memory there is also no record of which request has lost its event.
    } catch (const std::bad_alloc&) {
      lost = true;
      if (events.empty()) wake();
      return;
    }
    if (events.size() == 1) wake();
  }
};

engine_requests::engine_requests(actors::engine_port& engine, std::function<void()> wake)
    : engine_(engine), inbox_(std::make_shared<inbox>()) {
  static std::atomic<std::uint64_t> made{0};
  client_ = "socket " + std::to_string(++made);
  inbox_->wake = std::move(wake);
}

engine_requests::~engine_requests() {
  close();
}

engine_requests::key engine_requests::start(actors::request request) {
  const key new_key = ++last_key_;
  request.client = request.tenant.empty() ? client_ : "key " + request.tenant;
  auto& e = requests_[new_key];
  e.pooled = request.pooling != actors::pooling::none;
  if (e.pooled && n_pooled_ >= most_pooled) {
    e.waits = std::make_unique<actors::request>(std::move(request));
    line_.push_back(new_key);
  } else {
    submit(new_key, e, std::move(request));
  }
  if (socket_slow_) set_paused(e, slow_socket);
  return new_key;
}

void engine_requests::submit(key of, entry& e, actors::request request) {
  if (e.pooled) ++n_pooled_;
  e.id = engine_.submit(std::move(request),
                        [to = inbox_, of](actors::event ev) { to->push(of, std::move(ev)); });
}

void engine_requests::submit_waiting() {
  while (!line_.empty() && n_pooled_ < most_pooled) {
    const auto found = requests_.find(line_.front());
    line_.pop_front();
    if (found == requests_.end()) continue;
    entry& e = found->second;
    submit(found->first, e, std::move(*std::exchange(e.waits, nullptr)));
    if (e.paused != 0) engine_.pause(e.id);
  }
}

void engine_requests::forget(std::unordered_map<key, entry>::iterator which) {
  if (which->second.pooled && which->second.waits == nullptr) --n_pooled_;
  requests_.erase(which);
}

engine_requests::key engine_requests::follow(std::shared_ptr<event_source> from) {
  const key new_key = ++last_key_;
  auto& e = requests_[new_key];
  e.source = std::move(from);
  if (socket_slow_) set_paused(e, slow_socket);
  e.source->start([to = inbox_, new_key](actors::event ev) { to->push(new_key, std::move(ev)); },
                  client_);
  return new_key;
}

bool engine_requests::end(key which) {
  const auto found = requests_.find(which);
  if (found != requests_.end() && found->second.source != nullptr) {
    found->second.source->end();
    return true;
  }
  cancel(which);
  return false;
}

void engine_requests::leave(const entry& e) {
  if (e.source != nullptr)
    e.source->leave();
  else if (e.waits == nullptr)
    engine_.cancel(e.id);
}

void engine_requests::cancel(key which) {
  const auto found = requests_.find(which);
  if (found == requests_.end()) return;
  leave(found->second);
  forget(found);
  submit_waiting();
}

void engine_requests::cancel_all() {
  const auto all = std::exchange(requests_, {});
  line_.clear();
  n_pooled_ = 0;
  for (const auto& entry : all)
    leave(entry.second);
}

void engine_requests::pause(key which, pause_reason why) {
  if (const auto found = requests_.find(which); found != requests_.end())
    set_paused(found->second, found->second.paused | why);
}

void engine_requests::resume(key which, pause_reason why) {
  if (const auto found = requests_.find(which); found != requests_.end())
    set_paused(found->second, found->second.paused & ~static_cast<unsigned>(why));
}

void engine_requests::pause_all() {
  socket_slow_ = true;
  for (auto& entry : requests_)
    set_paused(entry.second, entry.second.paused | slow_socket);
}

void engine_requests::resume_all() {
  socket_slow_ = false;
  for (auto& entry : requests_)
    set_paused(entry.second, entry.second.paused & ~static_cast<unsigned>(slow_socket));
}

void engine_requests::set_paused(entry& e, unsigned paused) {
  const bool was_paused = e.paused != 0;
  e.paused = paused;
  if (was_paused == (paused != 0) || e.waits != nullptr) return;
  if (e.source != nullptr)
    paused != 0 ? e.source->pause() : e.source->resume();
  else if (paused != 0)
    engine_.pause(e.id);
  else
    engine_.resume(e.id);
}

std::vector<std::pair<engine_requests::key, actors::event>> engine_requests::take_events() {
  std::vector<std::pair<key, actors::event>> arrived;
  bool lost = false;
  {
    const std::lock_guard lock(inbox_->mutex);
    arrived.swap(inbox_->events);
    lost = std::exchange(inbox_->lost, false);
  }
  if (lost) {
    // There was no memory for an event, which may have been the last one of any request. Therefore
    // all requests of this socket end with an error here.
    arrived.clear();
    for (const auto& [at, e] : requests_) {
      leave(e);
      actors::event failed;
      failed.error = actors::request_error{actors::errc::executor_failed, "out of memory", ""};
      failed.last = true;
      arrived.emplace_back(at, std::move(failed));
    }
  }
  std::erase_if(arrived, [this](const auto& one) { return !requests_.contains(one.first); });
  for (const auto& [from, ev] : arrived) {
    const auto found = requests_.find(from);
    if (found == requests_.end()) continue;
    if (found->second.source != nullptr) found->second.source->taken(1);
    if (ev.last) forget(found);
  }
  submit_waiting();
  return arrived;
}

void engine_requests::close() {
  {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->wake = nullptr;
    inbox_->events.clear();
  }
  cancel_all();
}

} // namespace twill::net
