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
  while (deliver_ && !paused_ && room_ > 0 && next_ < n_shown) {
    auto ev = read_record(bytes_->records[next_++]);
    if (!ev) continue; // a mark of the journal
    --room_;
    deliver(std::move(*ev));
  }
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
