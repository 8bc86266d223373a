// text_limits: how far long work on a text goes that runs on this thread: tokenizing and rendering
// a template look here now and then.
//
// A scope belongs to the thread that made it, and scopes nest; without one there is no limit. What
// is_unwanted() reads must be safe to read on that thread.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

namespace twill::models {

class text_limits {
public:
  /// Tokenizing ends early, with the ids that it has, once they are more than `most_ids`, or once
  /// `is_unwanted` says so. A template fails then.
  explicit text_limits(std::size_t most_ids, std::function<bool()> is_unwanted = nullptr)
      : most_ids_(most_ids), is_unwanted_(std::move(is_unwanted)),
        outer_(std::exchange(current_, this)) {}
  ~text_limits() { current_ = outer_; }
  text_limits(const text_limits&) = delete;
  text_limits& operator=(const text_limits&) = delete;

  static std::size_t most_ids() {
    return current_ == nullptr ? std::numeric_limits<std::size_t>::max() : current_->most_ids_;
  }
  static bool unwanted() {
    return current_ != nullptr && current_->is_unwanted_ && current_->is_unwanted_();
  }

private:
  std::size_t most_ids_;
  std::function<bool()> is_unwanted_;
  text_limits* outer_;
  inline static thread_local text_limits* current_ = nullptr;
};

} // namespace twill::models
