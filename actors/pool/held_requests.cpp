#include "actors/pool/held_requests.hpp"

#include <algorithm>
#include <utility>

namespace twill::actors {

namespace {

using place = held_request::place;

bool is_over(const std::optional<held_requests::time>& limit, held_requests::time now) {
  return limit && *limit <= now;
}

request_error full(const char* why) {
  return {errc::queue_full, std::string(why) + "; retry later", "", 1};
}

} // namespace

void held_requests::add(held_request_ptr held) {
  const request_id id = held->id;
  all_.emplace(id, std::move(held));
}

void held_requests::remove(const held_request& held) {
  all_.erase(held.id);
}

held_request_ptr held_requests::find(request_id id) const {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second;
}

/// Returns why the request may not wait for its model; nullopt if it may. Among other bounds, a
/// client with a name may have at most seven times as many waiting requests as the model's queue
/// has free places, so that other clients find places too.
std::optional<request_error> held_requests::queue_full(const held_request& held,
                                                       std::size_t n_waiting,
                                                       const config::options& options) const {
  const auto most = static_cast<std::size_t>(options.scheduler.max_queued);
  if (n_waiting >= most)
    return full("the queue of this model, which is being loaded, is full "
                "(`scheduler.max_queued`)");
  if (waiting_bytes_ + held.bytes > options.scheduler.max_prompts_bytes)
    return full("the prompts that wait for their models are too large together "
                "(`scheduler.max_prompts`)");
  const auto of_client = waiting_of_.find(held.asked.client);
  const std::size_t own = of_client == waiting_of_.end() ? 0 : of_client->second;
  if (!held.asked.client.empty() && own > 7 * (most - n_waiting))
    return full("this client has most of the places in the queue (`scheduler.max_queued`)");
  const auto* tenant = config::find_tenant(options.tenants, held.asked.tenant);
  if (tenant != nullptr && tenant->max_queued > 0 &&
      own >= static_cast<std::size_t>(tenant->max_queued))
    return full("too many requests of this tenant wait (`tenants.max_queued`)");
  return std::nullopt;
}

void held_requests::begin_wait(held_request& held, const config::options& options, time now) {
  ++waiting_of_[held.asked.client]; // the only statement here that can throw
  waiting_bytes_ += held.bytes;
  held.where = place::waiting;
  auto timeout = held.asked.timeout;
  if (const auto most = options.limits.request_timeout; most.count() > 0)
    timeout = timeout.count() > 0 ? std::min(timeout, most) : most;
  if (timeout.count() > 0) held.deadline = now + timeout;
  if (const auto patience = options.scheduler.queue_timeout; patience.count() > 0)
    held.queue_deadline = now + patience;
  held.asked.arrived = now;
}

void held_requests::end_wait(const held_request& held) {
  waiting_bytes_ -= held.bytes;
  const auto found = waiting_of_.find(held.asked.client);
  if (found != waiting_of_.end() && --found->second == 0) waiting_of_.erase(found);
}

std::vector<held_request_ptr> held_requests::late(time now) const {
  std::vector<held_request_ptr> over;
  for (const auto& [id, held] : all_)
    if (held->where == place::waiting &&
        (is_over(held->deadline, now) || is_over(held->queue_deadline, now)))
      over.push_back(held);
  return over;
}

std::optional<held_requests::time> held_requests::next_late(time now) const {
  std::optional<time> next;
  for (const auto& [id, held] : all_) {
    if (held->where != place::waiting) continue;
    for (const auto& limit : {held->deadline, held->queue_deadline})
      if (limit && *limit > now) next = next ? std::min(*next, *limit) : *limit;
  }
  return next;
}

std::string pool_holder_name(request_id id) {
  return "request " + std::to_string(id) + " of the pool";
}

void held_requests::account(ledger& to) const {
  const std::string of_clients = "requests of clients that wait for models",
                    bytes = "bytes of prompts that wait for models";
  for (const auto& [client, n] : waiting_of_)
    to.taken(of_clients, static_cast<std::int64_t>(n));
  to.taken(bytes, waiting_bytes_);
  for (const auto& [id, held] : all_) {
    to.exists(pool_holder_name(id));
    if (held->where != held_request::place::waiting) continue;
    to.held(of_clients, pool_holder_name(id));
    to.held(bytes, pool_holder_name(id), held->bytes);
  }
}

request_error waited_too_long(const held_request& held, const std::string& model,
                              held_requests::time now) {
  if (is_over(held.deadline, now))
    return {errc::timed_out,
            "the deadline of the request passed while it waited for the model " + model +
                " to be loaded; retry later",
            ""};
  return {errc::queue_timed_out,
          "the request waited for longer than `scheduler.queue_timeout` for the model " + model +
              " to be loaded; retry later",
          "", 1};
}

} // namespace twill::actors
