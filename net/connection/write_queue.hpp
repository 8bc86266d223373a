// write_queue: the waiting output of one socket, of which one write at a time is in progress.
//
// Use it on the session's strand. Everything that is pushed while a write is in progress is
// joined into the next write.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace twill::net {

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

  /// Moves all waiting bytes into the next write. The returned bytes stay valid until end_write().
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
