#include "tools/twill-bench/plan/allocator_waits.hpp"

#include <algorithm>
#include <atomic>
#include <typeinfo>

#include "actors/detail/caf_compat.hpp"
#include "actors/detail/mailbox_depths.hpp"
#include "actors/detail/message_probe.hpp"

namespace twill::bench {
namespace {

using std::chrono::steady_clock;

std::atomic<allocator_waits*> waits_of_probe{nullptr};

void probe(actors::actor_kind actor, const std::type_info& message) {
  if (actor == actors::actor_kind::batcher && message == typeid(actors::kv_grant))
    waits_of_probe.load()->granted();
}

/// Passes every message on to the allocator and notes when a request was sent.
class observed_allocator final : public caf::monitorable_actor {
public:
  observed_allocator(caf::actor_config& config, allocator_waits& waits,
                     caf::strong_actor_ptr allocator)
      : caf::monitorable_actor(config), waits_(waits), allocator_(std::move(allocator)) {}

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* unit) override {
    if (message->mid.is_request()) waits_.asked();
    allocator_->enqueue(std::move(message), unit);
  }

private:
  allocator_waits& waits_;
  caf::strong_actor_ptr allocator_;
};

} // namespace

allocator_waits::allocator_waits() {
  waits_of_probe = this;
  actors::installed_probe() = probe;
}

allocator_waits::~allocator_waits() {
  actors::installed_probe() = nullptr;
  waits_of_probe = nullptr;
}

actors::kv_allocator_actor
allocator_waits::in_front_of(caf::actor_system& system,
                             const actors::kv_allocator_actor& allocator) {
  caf::actor_config config;
  return caf::actor_cast<actors::kv_allocator_actor>(
      caf::make_actor<observed_allocator, caf::strong_actor_ptr>(
          system.next_actor_id(), system.node(), &system, config, *this,
          caf::actor_cast<caf::strong_actor_ptr>(allocator)));
}

double allocator_waits::take(time_point from, time_point until) {
  const std::lock_guard lock(mutex_);
  std::chrono::duration<double> sum{0};
  for (const auto& [asked, granted] : ended_) {
    const auto first = std::max(asked, from);
    const auto last = std::min(granted, until);
    if (first < last) sum += last - first;
  }
  ended_.clear();
  return sum.count();
}

void allocator_waits::asked() {
  const std::lock_guard lock(mutex_);
  asked_at_ = steady_clock::now();
}

void allocator_waits::granted() {
  const std::lock_guard lock(mutex_);
  if (asked_at_) ended_.emplace_back(*asked_at_, steady_clock::now());
  asked_at_.reset();
}

} // namespace twill::bench
