// text_limits: limits long work on texts on the current thread. Tokenizing and the rendering of a
// template check the limits from time to time.
//
// The limits of an object apply on the thread that made it, from its construction to its
// destruction. Objects nest: the newest one counts, and without any there is no limit. The function
// `is_unwanted` is called on that thread and must only read what is safe to read there.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

namespace twill::models {

class text_limits {
public:
  /// Tokenizing ends early and returns the ids so far once they are more than `most_ids`, or once
  /// `is_unwanted` returns true. The rendering of a template fails once `is_unwanted` returns true.
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
