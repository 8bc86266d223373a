// write_queue: the output of one socket for its one writer; bytes are bounded, writes coalesce.
//
// On the session's strand. While one buffer is being written, everything pushed joins the next one.
// flow_gate tells when producers must rest: it shuts at high water and opens again at low water, so
// that a reader near the limit does not make it flap.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace twill::net {

/// Producers asked to rest may still finish their step: more than the limit is no fault before
/// this.
inline constexpr std::chrono::seconds pause_grace{1};

class flow_gate {
public:
  explicit flow_gate(std::size_t max_bytes)
      : high_(max_bytes / 2), low_(max_bytes / 8), max_(max_bytes) {}

  enum class change { none, shut, opened };

  change update(std::size_t waiting_bytes) noexcept {
    if (open_ && waiting_bytes > high_) {
      open_ = false;
      return change::shut;
    }
    if (!open_ && waiting_bytes <= low_) {
      open_ = true;
      return change::opened;
    }
    return change::none;
  }
  bool open() const noexcept { return open_; }
  /// Producers were asked to rest and yet this much came: the socket is to be cut off.
  bool over_limit(std::size_t waiting_bytes) const noexcept { return waiting_bytes > max_; }

private:
  std::size_t high_;
  std::size_t low_;
  std::size_t max_;
  bool open_ = true;
};

class write_queue {
public:
  void push(std::string_view bytes) { waiting_.append(bytes); }
  void push(std::string&& bytes) {
    if (waiting_.empty())
      waiting_ = std::move(bytes);
    else
      waiting_.append(bytes);
  }

  bool writing() const noexcept { return writing_; }
  bool empty() const noexcept { return waiting_.empty() && !writing_; }
  std::size_t bytes() const noexcept { return waiting_.size() + in_flight_.size(); }

  /// Takes all that waits as the next write; the bytes stay valid until end_write().
  const std::string& begin_write() {
    in_flight_ = std::exchange(waiting_, {});
    writing_ = true;
    return in_flight_;
  }
  bool has_waiting() const noexcept { return !waiting_.empty(); }
  void end_write() noexcept {
    in_flight_ = {};
    writing_ = false;
  }

private:
  std::string waiting_;
  std::string in_flight_;
  bool writing_ = false;
};

} // namespace twill::net
