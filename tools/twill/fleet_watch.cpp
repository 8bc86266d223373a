#include "tools/twill/fleet_watch.hpp"

#include <condition_variable>
#include <exception>
#include <string>
#include <utility>

#include "tools/twill/daemon_view.hpp"

namespace twill::tools {
namespace {

/// The result of one query: a view, or the reason for having none.
struct finding {
  daemon_view view;
  std::string trouble;
  fleet_member::standing how = fleet_member::standing::answers;

  void put_into(fleet_member& member) && {
    if (how == fleet_member::standing::answers)
      member.take(std::move(view));
    else
      member.lose(std::move(trouble), how);
  }
};

finding look_once(const endpoint& where, const std::stop_token& stop) {
  using enum fleet_member::standing;
  try {
    return {look_at(where, {look_patience, stop}), {}, answers};
  } catch (const not_twilld& error) {
    return {{}, error.what(), other_server};
  } catch (const std::exception& error) { // an exception must not leave a thread
    return {{}, error.what(), no_answer};
  }
}

} // namespace

fleet_watch::fleet_watch(const std::vector<endpoint>& daemons, std::chrono::milliseconds pause)
    : members_(daemons.begin(), daemons.end()) {
  for (std::size_t i = 0; i < daemons.size(); ++i)
    threads_.emplace_back([this, i, pause, where = daemons[i]](const std::stop_token& stop) {
      look_on(i, where, pause, stop);
    });
}

fleet_watch::~fleet_watch() {
  for (auto& thread : threads_) // stop all threads before the destructor joins the first
    thread.request_stop();
}

std::vector<fleet_member> fleet_watch::members() const {
  const std::lock_guard lock(mutex_);
  return members_;
}

void fleet_watch::look_on(std::size_t index, const endpoint& where, std::chrono::milliseconds pause,
                          const std::stop_token& stop) {
  std::condition_variable_any stopped;
  std::mutex mine;
  while (!stop.stop_requested()) {
    auto found = look_once(where, stop);
    {
      const std::lock_guard lock(mutex_);
      std::move(found).put_into(members_[index]);
    }
    std::unique_lock lock(mine);
    stopped.wait_for(lock, stop, pause, [] { return false; });
  }
}

std::vector<fleet_member> look_twice(const std::vector<endpoint>& daemons,
                                     std::chrono::milliseconds pause) {
  std::vector<fleet_member> members(daemons.begin(), daemons.end());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < daemons.size(); ++i)
    threads.emplace_back([&member = members[i], &where = daemons[i], pause] {
      look_once(where, {}).put_into(member);
      if (!member.now()) return;
      std::this_thread::sleep_for(pause);
      look_once(where, {}).put_into(member);
    });
  threads.clear(); // joins the threads
  return members;
}

} // namespace twill::tools
