#include "models/offload/streams/io_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
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
  std::mutex mutex;
  std::condition_variable changed;                    ///< wakes threads: there may be a task to run
  std::condition_variable ended;                      ///< a task or a thread has ended
  std::vector<std::shared_ptr<io_user::state>> users; ///< by rising rank
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
};

io_threads::io_threads() : shared_(std::make_shared<shared>()) {}

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

void io_user::post_all(std::vector<task> tasks, bool first) {
  const std::lock_guard lock(threads_->mutex);
  if (own_->closed || threads_->stop || tasks.empty()) return;
  const bool single = tasks.size() == 1;
  own_->tasks.insert(first ? own_->tasks.begin() : own_->tasks.end(),
                     std::make_move_iterator(tasks.begin()), std::make_move_iterator(tasks.end()));
  if (single)
    threads_->changed.notify_one();
  else
    threads_->changed.notify_all();
}

bool io_user::close(std::optional<std::chrono::milliseconds> patience) {
  std::deque<task> dropped;
  std::unique_lock lock(threads_->mutex);
  if (own_->closed) return own_->running == 0;
  own_->closed = true;
  dropped.swap(own_->tasks);
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
