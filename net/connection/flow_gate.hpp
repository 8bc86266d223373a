// flow_gate: tells producers when to rest. It shuts at high water and opens again at low water, so
// that a reader near the limit does not make it flap. Under pressure (the output of all sockets
// together is too much) both marks are near the ground. Pure.
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
