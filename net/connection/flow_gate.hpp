// flow_gate: decides when the requests of a client must pause because too much of their output
// waits for a client that reads slowly. The gate shuts when the waiting bytes exceed a high mark,
// and opens again only when they are at or below a low mark, so that it does not change its state
// often near the limit. Under pressure, which means that the waiting output of all sockets together
// is too much, both marks are much lower. The functions are pure.
#pragma once

#include <cstddef>

namespace twill::net {

class flow_gate {
public:
  explicit flow_gate(std::size_t max_bytes)
      : high_(max_bytes / 2), low_(max_bytes / 8), max_(max_bytes) {}

  enum class change { none, shut, opened };

  change update(std::size_t waiting_bytes) noexcept {
    if (open_ && waiting_bytes > (pressed_ ? max_ / 64 : high_)) {
      open_ = false;
      return change::shut;
    }
    if (!open_ && waiting_bytes <= (pressed_ ? max_ / 128 : low_)) {
      open_ = true;
      return change::opened;
    }
    return change::none;
  }
  void press(bool pressed) noexcept { pressed_ = pressed; }
  bool open() const noexcept { return open_; }
  bool over_limit(std::size_t waiting_bytes) const noexcept { return waiting_bytes > max_; }

private:
  std::size_t high_;
  std::size_t low_;
  std::size_t max_;
  bool open_ = true;
  bool pressed_ = false;
};

} // namespace twill::net
