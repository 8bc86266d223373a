#include "models/offload/streams/io_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace twill::models::offload {

/// The mutex of `shared` guards all members that change.
struct io_user::state {
  io_share share;
  std::deque<task> tasks;
  std::vector<std::size_t> free_slots;
  std::int32_t running = 0;
  bool closed = false;
  std::chrono::steady_clock::time_point busy_since; ///< since when `running` has been above 0
  std::chrono::steady_clock::duration busy{};       ///< time with running tasks before busy_since

  bool idle() const { return running == 0 && tasks.empty(); }
};

struct io_threads::shared {
  struct order {
    std::shared_ptr<io_user::state> user;
    std::vector<task> tasks;
    bool first = false;
  };

  std::mutex mutex;
  std::condition_variable changed;                    ///< wakes threads: there may be a task to run
  std::condition_variable ended;                      ///< a task or a thread has ended
  std::vector<std::shared_ptr<io_user::state>> users; ///< by rising rank
  std::map<std::uint64_t, order> orders;              ///< orders that are not served yet, by number
  std::uint64_t last_number = 0;
  std::uint64_t granted = 0; ///< orders up to this number begin at once
  bool asked = false;        ///< `notifier` was called for an order that is not served yet
  order_notifier notifier;
  std::int32_t alive = 0, running = 0;
  bool stop = false;

  /// The most urgent user that may begin a task now; null if there is none.
  std::shared_ptr<io_user::state> next_user() const {
    const io_user::state* urgent = nullptr; // the first that is not idle
    for (const auto& user : users) {
      const bool beside = urgent != nullptr && urgent->share.rank < user->share.rank;
      const std::int32_t most = beside ? user->share.most_beside : user->share.most;
      if (!user->tasks.empty() && user->running < most) return user;
      if (urgent == nullptr && !user->idle()) urgent = user.get();
    }
    return nullptr;
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      std::shared_ptr<io_user::state> user;
      changed.wait(lock, [&] { return stop || (user = next_user()) != nullptr; });
      if (stop) break;
      task next = std::move(user->tasks.front());
      user->tasks.pop_front();
      const std::size_t slot = user->free_slots.back();
      user->free_slots.pop_back();
      if (user->running++ == 0) user->busy_since = std::chrono::steady_clock::now();
      ++running;
      lock.unlock();
      try {
        next(slot);
      } catch (...) { // memory was short inside the task; the thread must go on
      }
      next = nullptr; // destroy the task's captures before the lock is taken
      lock.lock();
      --running;
      user->free_slots.push_back(slot);
      if (--user->running == 0) user->busy += std::chrono::steady_clock::now() - user->busy_since;
      if (user->idle() && users.size() > 1) changed.notify_all(); // others may run more
      if (user->closed || stop) ended.notify_all();
    }
    --alive;
    ended.notify_all();
  }

  /// Queues all of `tasks`; queues none and throws if memory is short.
  void queue(io_user::state& user, std::vector<task>& tasks, bool first) {
    if (user.closed || stop) return;
    const auto n = tasks.size();
    user.tasks.insert(first ? user.tasks.begin() : user.tasks.end(),
                      std::make_move_iterator(tasks.begin()), std::make_move_iterator(tasks.end()));
    if (n == 1)
      changed.notify_one();
    else
      changed.notify_all();
  }

  /// Begins all waiting orders, in the sequence in which they were placed.
  void begin_all() {
    while (!orders.empty()) {
      auto& next = orders.begin()->second;
      queue(*next.user, next.tasks, next.first);
      orders.erase(orders.begin());
    }
  }
};

io_threads::io_threads(order_notifier notifier) : shared_(std::make_shared<shared>()) {
  shared_->notifier = std::move(notifier);
}

io_threads::~io_threads() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  shared_->ended.wait(lock, [this] { return shared_->alive == shared_->running; });
}

std::unique_ptr<io_user> io_threads::join(const io_share& share) {
  auto own = std::make_shared<io_user::state>();
  own->share = share;
  for (auto slot = static_cast<std::size_t>(share.most); slot-- > 0;)
    own->free_slots.push_back(slot);
  std::unique_ptr<io_user> user(new io_user(shared_, own));
  const std::lock_guard lock(shared_->mutex);
  auto& users = shared_->users;
  users.insert(
      std::upper_bound(users.begin(), users.end(), own,
                       [](const auto& a, const auto& b) { return a->share.rank < b->share.rank; }),
      own);
  // When a user (a stream of transfers) leaves, its threads stay and serve the other users, except
  // those that still run one of its tasks. So only as many threads are started as are missing.
  std::int32_t wanted = shared_->running;
  for (const auto& one : users)
    wanted += one->share.most - one->running;
  for (; shared_->alive < wanted; ++shared_->alive)
    std::thread([all = shared_] { all->work(); }).detach();
  return user;
}

void io_threads::serve(std::uint64_t number) {
  const std::lock_guard lock(shared_->mutex);
  if (number > shared_->last_number) return;
  shared_->asked = false;
  shared_->granted = shared_->last_number + orders_ahead;
  shared_->begin_all();
}

void io_threads::serve_all() {
  const std::lock_guard lock(shared_->mutex);
  shared_->asked = false;
  shared_->begin_all();
}

io_user::io_user(std::shared_ptr<io_threads::shared> threads, std::shared_ptr<state> own)
    : threads_(std::move(threads)), own_(std::move(own)) {}

void io_user::post(task t) {
  const std::lock_guard lock(threads_->mutex);
  if (own_->closed || threads_->stop) return;
  own_->tasks.push_back(std::move(t));
  threads_->changed.notify_one();
}

void io_user::post_first(task t) {
  const std::lock_guard lock(threads_->mutex);
  if (own_->closed || threads_->stop) return;
  own_->tasks.push_front(std::move(t));
  threads_->changed.notify_one();
}

std::uint64_t io_user::order(std::vector<task> tasks, bool first) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(threads_->mutex);
    if (own_->closed) return 0;
    number = ++threads_->last_number;
    if (!threads_->notifier || number <= threads_->granted)
      threads_->queue(*own_, tasks, first);
    else
      threads_->orders.emplace(number, io_threads::shared::order{own_, std::move(tasks), first});
    const bool running_short = number + io_threads::orders_ahead / 2 > threads_->granted;
    if (!threads_->notifier || threads_->asked || !running_short) return number;
    threads_->asked = true;
  }
  bool notified = false;
  try {
    notified = threads_->notifier(number);
  } catch (...) { // memory is short: begin all orders below
  }
  if (notified) return number;
  const std::lock_guard lock(threads_->mutex);
  threads_->asked = false;
  try {
    threads_->begin_all();
  } catch (...) { // memory is short; orders of others wait for serve_all()
    if (threads_->orders.erase(number) > 0) throw;
  }
  return number;
}

bool io_user::close(std::optional<std::chrono::milliseconds> patience) {
  std::deque<task> dropped;
  std::vector<io_threads::shared::order> not_served;
  std::unique_lock lock(threads_->mutex);
  if (own_->closed) return own_->running == 0;
  own_->closed = true;
  dropped.swap(own_->tasks);
  for (auto at = threads_->orders.begin(); at != threads_->orders.end();) {
    const auto one = at++;
    if (one->second.user == own_) not_served.push_back(threads_->orders.extract(one).mapped());
  }
  const auto over = [this] { return own_->running == 0; };
  bool all_over = true;
  if (patience)
    all_over = threads_->ended.wait_for(lock, *patience, over);
  else
    threads_->ended.wait(lock, over);
  std::erase(threads_->users, own_);
  threads_->changed.notify_all(); // others may run more
  return all_over;
}

std::int32_t io_user::most() const {
  return own_->share.most;
}

double io_user::busy_seconds() const {
  const std::lock_guard lock(threads_->mutex);
  const auto now = own_->running > 0 ? std::chrono::steady_clock::now() - own_->busy_since
                                     : std::chrono::steady_clock::duration{};
  return std::chrono::duration<double>(own_->busy + now).count();
}

} // namespace twill::models::offload
