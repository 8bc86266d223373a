#include "net/stored/stored_reader.hpp"

#include <mutex>
#include <utility>

#include "net/stored/stored_record.hpp"
#include "net/stored/stored_service.hpp"

namespace twill::net {

stored_reader::~stored_reader() = default;

void stored_reader::start(actors::event_callback deliver, const std::string& client) {
  deliver_ = std::move(deliver);
  if (asked_) asked_->client = asked_->tenant.empty() ? client : "key " + asked_->tenant;
  service_.start(shared_from_this());
}

void stored_reader::leave() {
  service_.leave(shared_from_this());
}

void stored_reader::end() {
  service_.end(shared_from_this());
}

void stored_reader::pause() {
  const std::lock_guard lock(service_.mutex_);
  paused_ = true;
}

void stored_reader::resume() {
  const std::lock_guard lock(service_.mutex_);
  paused_ = false;
  service_.pump(*this);
}

void stored_reader::taken(std::size_t n) {
  const std::lock_guard lock(service_.mutex_);
  room_ += n;
  service_.pump(*this);
}

void stored_reader::deliver(actors::event&& ev) {
  ended_ = ev.last;
  deliver_(std::move(ev));
  if (ended_) deliver_ = nullptr;
}

void stored_reader::pump(std::size_t n_shown) {
  if (begun_ && deliver_ && !paused_ && room_ > 0 && std::exchange(shows_begin_, false)) {
    --room_;
    actors::event ev;
    ev.last = only_begin_;
    deliver(std::move(ev));
  }
  if (shows_begin_) return;
  while (deliver_ && !paused_ && room_ > 0) {
    auto ev = next_event(n_shown);
    if (!ev) return;
    --room_;
    deliver(std::move(*ev));
  }
}

/// Records that are marks (see resume_mark()) are skipped, since they are not events.
std::optional<actors::event> stored_reader::next_event(std::size_t n_shown) {
  const auto& records = bytes_->records;
  for (; !order_ && next_ < n_shown;)
    if (auto ev = read_record(records[next_++])) return ev;
  if (!order_) return std::nullopt;
  for (; in_turn_.empty() && next_ < n_shown; ++next_)
    if (const auto ev = read_record(records[next_])) order_->add(*ev, next_, in_turn_);
  if (in_turn_.empty()) return std::nullopt;
  auto ev = read_record(records[in_turn_.front()]);
  in_turn_.pop_front();
  order_->adjust(*ev);
  return ev;
}

void stored_reader::on_begun(std::size_t n_shown) {
  begun_ = true;
  pump(n_shown);
}

void stored_reader::end_with(actors::request_error error) {
  if (!deliver_) return;
  actors::event ev;
  ev.error = std::move(error);
  ev.last = true;
  deliver(std::move(ev));
}

} // namespace twill::net
