// The limits and time-outs of requests that wait for models, compared with a plain list.
#include "actors/pool/held_requests.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::actors;
using namespace twill::test;
using namespace std::chrono_literals;
using place = held_request::place;

namespace {

struct row {
  held_request_ptr held;
  std::optional<held_requests::time> deadline, queue_deadline;
};

class both {
public:
  both() { options_.scheduler.max_queued = 8; }

  void apply(const operation& op) {
    now_ += 1s * (op.c % 3);
    row* one = rows_.empty() ? nullptr : &rows_[op.a % rows_.size()];
    switch (op.kind % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      ask(op);
      break;
    case 6:
      if (one != nullptr) leave(*one, op.b);
      break;
    default:
      if (op.a % 4 == 0) configure(op);
    }
    compare();
  }

  void end() {
    while (!rows_.empty())
      leave(rows_.back(), 2);
    compare();
    demand(requests_.empty(), "no request is left");
    for (const char* client : {"", "small", "b"}) {
      held_request whole;
      whole.asked.client = client;
      whole.bytes = options_.scheduler.max_prompts_bytes;
      demand(!requests_.queue_full(whole, 0, options_), "all places are free again");
    }
  }

private:
  std::size_t count(const std::string& client, std::size_t model) const {
    return static_cast<std::size_t>(std::count_if(rows_.begin(), rows_.end(), [&](const row& one) {
      return one.held->where == place::waiting &&
             (client.empty() || one.held->asked.client == client) &&
             (model == 99 || one.held->model == model);
    }));
  }

  /// A word of the reason why a request may not wait, or an empty text.
  std::string full(const held_request& held, std::size_t n_waiting) const {
    const auto most = static_cast<std::size_t>(options_.scheduler.max_queued);
    if (n_waiting >= most) return "`scheduler.max_queued`";
    std::int64_t bytes = held.bytes;
    for (const row& one : rows_)
      if (one.held->where == place::waiting) bytes += one.held->bytes;
    if (bytes > options_.scheduler.max_prompts_bytes) return "`scheduler.max_prompts`";
    const std::string& client = held.asked.client;
    std::size_t own = 0; // requests without a name count as one client's, in a tenant's limit
    for (const row& one : rows_)
      own += one.held->where == place::waiting && one.held->asked.client == client ? 1 : 0;
    if (!client.empty() && own > 7 * (most - n_waiting)) return "this client";
    for (const auto& tenant : options_.tenants)
      if (tenant.name == held.asked.tenant && tenant.max_queued > 0 &&
          own >= static_cast<std::size_t>(tenant.max_queued))
        return "`tenants.max_queued`";
    return "";
  }

  void ask(const operation& op) {
    const auto held = std::make_shared<held_request>();
    held->id = ++last_id_;
    held->model = op.a % 4 / 3; // the first model in most cases
    constexpr const char* names[] = {"", "small", "b", "b"};
    held->asked.client = names[op.b % 4];
    held->asked.tenant = op.b % 5 == 0 ? "" : names[op.b % 4];
    held->asked.timeout = 1s * (op.c / 3 % 4);
    held->bytes = op.b / 4 % 12;
    const std::size_t n_waiting = count("", held->model);
    const auto refused = requests_.queue_full(*held, n_waiting, options_);
    const std::string expected = full(*held, n_waiting);
    const std::string is = refused ? refused->message : "";
    demand(refused.has_value() == !expected.empty() && is.find(expected) != std::string::npos,
           "refused because \"" + is + "\", expected \"" + expected + "\"");
    if (refused) {
      demand(refused->code == errc::queue_full && refused->retry_after_s >= 1, "what is refused");
      return;
    }
    requests_.add(held);
    rows_.push_back({held, {}, {}});
    if (op.c % 16 == 15) return; // the model is awake, so the request does not wait
    requests_.begin_wait(*held, options_, now_);
    row& one = rows_.back();
    std::set<std::chrono::milliseconds> most{held->asked.timeout, options_.limits.request_timeout};
    most.erase(0ms);
    if (!most.empty()) one.deadline = now_ + *most.begin();
    if (options_.scheduler.queue_timeout > 0ms)
      one.queue_deadline = now_ + options_.scheduler.queue_timeout;
    demand(held->where == place::waiting, "it waits");
    demand(held->asked.arrived == now_, "since when its time counts");
  }

  /// Ends the wait of a request, or removes a request that no longer waits.
  void leave(row& one, std::uint32_t how) {
    if (one.held->where == place::waiting) {
      requests_.end_wait(*one.held);
      constexpr place next[] = {place::sending, place::refused, place::sent};
      one.held->where = next[how % 3];
      if (how % 3 < 2) return;
    }
    requests_.remove(*one.held);
    std::erase_if(rows_, [id = one.held->id](const row& each) { return each.held->id == id; });
  }

  void configure(const operation& op) {
    options_.scheduler.max_queued = static_cast<std::int32_t>(1 + op.c % 12);
    options_.scheduler.max_prompts_bytes = 20 + op.b % 60;
    options_.scheduler.queue_timeout = 1s * (op.c % 4);
    options_.limits.request_timeout = 1s * (op.c / 4 % 5);
    options_.tenants.clear();
    config::tenant_options small;
    small.name = "small";
    small.max_queued = static_cast<std::int32_t>(op.c / 32 % 4);
    if (op.c % 7 > 0) options_.tenants.push_back(small);
  }

  void compare() {
    std::vector<request_id> late, expected;
    for (const auto& held : requests_.late(now_))
      late.push_back(held->id);
    std::optional<held_requests::time> next;
    for (const row& one : rows_) {
      demand(requests_.find(one.held->id) == one.held, "a request is found");
      if (one.held->where != place::waiting) continue;
      const bool timed_out = one.deadline && *one.deadline <= now_;
      const bool waited = one.queue_deadline && *one.queue_deadline <= now_;
      for (const auto& at : {one.deadline, one.queue_deadline})
        if (at && *at > now_) next = next ? std::min(*next, *at) : *at;
      if (!timed_out && !waited) continue;
      expected.push_back(one.held->id);
      const auto why = waited_too_long(*one.held, "m", now_);
      demand(why.code == (timed_out ? errc::timed_out : errc::queue_timed_out), "why it is late");
      demand(why.message.find(" m ") != std::string::npos, "it says for which model");
    }
    demand(late == expected, "which requests are late");
    demand(requests_.next_late(now_) == next, "when the next one is late");
    demand_equal(requests_.all().size(), rows_.size(), "the number of requests");
    demand_equal(requests_.empty(), rows_.empty(), "whether there is none");
    demand(requests_.find(last_id_ + 1) == nullptr, "an unknown request");
  }

  held_requests requests_;
  std::vector<row> rows_; ///< in the order of their ids
  config::options options_;
  held_requests::time now_{1h};
  request_id last_id_ = 0;
};

} // namespace

TEST_CASE("what waits for models is bounded and late as in a plain list", "[pool]") {
  CHECK(first_failure({.cases = 2000, .long_cases = 100'000}, [](const operations& sequence) {
          both requests;
          for (const operation& op : sequence)
            requests.apply(op);
          requests.end();
        }) == "");
}
