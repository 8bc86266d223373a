#include "tests/gpu/distant/chip.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <sys/mman.h>

namespace twill::test::chip {

struct stream {
  struct item {
    std::function<void()> work; ///< null: waits for `after`
    point after;
  };
  std::deque<item> items; ///< given and not begun
  long given = 0, done = 0;
};

namespace {

class processor {
public:
  processor() : thread_([this] { serve(); }) {}
  processor(const processor&) = delete;
  processor& operator=(const processor&) = delete;
  ~processor() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    void* data =
        mmap(nullptr, bytes, protection(), MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    memory_[data] = bytes;
    return data;
  }
  void release(void* data) {
    const std::lock_guard lock(mutex_);
    munmap(data, memory_.at(data));
    memory_.erase(data);
  }

  void give(stream& to, stream::item item) {
    const std::lock_guard lock(mutex_);
    to.items.push_back(std::move(item));
    ++to.given;
  }
  point end_of(const std::shared_ptr<stream>& of) {
    const std::lock_guard lock(mutex_);
    return {of, of->given};
  }
  void wait(const point& until) {
    std::unique_lock lock(mutex_);
    if (until.of == nullptr || until.of->done >= until.number) return;
    request own{until};
    requests_.push_back(&own);
    changed_.notify_all();
    changed_.wait(lock, [&] { return own.served; });
  }

private:
  struct request {
    const point& until;
    bool served = false;
  };

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ended_ || !requests_.empty(); });
      if (requests_.empty()) return;
      use_memory(true);
      std::deque<request*> served;
      while (!requests_.empty()) {
        served.push_back(requests_.front());
        requests_.pop_front();
        reach(served.back()->until, lock);
      }
      use_memory(false); // before any waiting thread continues
      for (request* one : served)
        one->served = true;
      changed_.notify_all();
    }
  }
  void reach(const point& until, std::unique_lock<std::mutex>& lock) {
    while (until.of->done < until.number) {
      const stream::item next = std::move(until.of->items.front());
      until.of->items.pop_front();
      if (next.work != nullptr) {
        lock.unlock();
        next.work();
        lock.lock();
      } else if (next.after.of != nullptr) {
        reach(next.after, lock);
      }
      ++until.of->done;
    }
  }
  int protection() const { return works_ ? PROT_READ | PROT_WRITE : PROT_NONE; }
  void use_memory(bool works) {
    works_ = works;
    for (const auto& [data, bytes] : memory_)
      mprotect(data, bytes, protection());
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<request*> requests_;
  std::map<void*, std::size_t> memory_; ///< begin and bytes of each allocation
  bool works_ = false, ended_ = false;
  std::thread thread_;
};

processor& only_processor() {
  static processor one;
  return one;
}

} // namespace

void* allocate(std::size_t bytes) {
  return only_processor().allocate(bytes);
}
void release(void* memory) {
  only_processor().release(memory);
}
std::shared_ptr<stream> make_stream() {
  return std::make_shared<stream>();
}
void begin(const std::shared_ptr<stream>& on, std::function<void()> work) {
  only_processor().give(*on, {std::move(work), {}});
}
void follow(const std::shared_ptr<stream>& on, const point& after) {
  only_processor().give(*on, {nullptr, after});
}
point end_of(const std::shared_ptr<stream>& on) {
  return only_processor().end_of(on);
}
void wait(const point& until) {
  only_processor().wait(until);
}

} // namespace twill::test::chip
