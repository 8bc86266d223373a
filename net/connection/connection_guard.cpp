#include "net/connection/connection_guard.hpp"

#include <algorithm>

namespace twill::net {
namespace {

/// Requests that have been paused may still send the output of the engine's current step, which
/// takes at most this long.
constexpr std::chrono::seconds pause_grace{1};

} // namespace

void connection_guard::on_waiting_bytes(std::size_t waiting_bytes, time now,
                                        connection_actions& actions) {
  switch (gate_.update(waiting_bytes)) {
  case flow_gate::change::shut:
    shut_since_ = now;
    actions.pause_requests = true;
    actions.resume_requests = false;
    break;
  case flow_gate::change::opened:
    actions.resume_requests = true;
    actions.pause_requests = false;
    break;
  case flow_gate::change::none:
    break;
  }
}

bool connection_guard::overrun(std::size_t waiting_bytes, time now) const {
  return gate_.over_limit(waiting_bytes) && now - shut_since_ > pause_grace;
}

connection_guard::time connection_guard::slow_reader_deadline() const {
  auto due = time::max();
  if (write_begun_.has_value()) due = *write_begun_ + limits_.slow_reader_timeout;
  if (!gate_.open()) due = std::min(due, shut_since_ + limits_.slow_reader_timeout);
  return due;
}

connection_guard::time connection_guard::next_deadline() const {
  return close_by_.has_value() ? *close_by_ : slow_reader_deadline();
}

connection_guard::verdict connection_guard::check(time now) const {
  if (close_by_.has_value()) return now >= *close_by_ ? verdict::close : verdict::fine;
  return now >= slow_reader_deadline() ? verdict::slow_reader : verdict::fine;
}

} // namespace twill::net
