// runtime: the memory of one render's values, the render's limits, and the current line of the
// template.
//
// Each render has one runtime, on one thread. Exceeding a limit or breaking a rule of the language
// throws template_error, which is always caught inside models/text/jinja and
// models/text/chat_template.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

struct template_error {
  int line;
  std::string message;
};

struct limits {
  std::size_t text_bytes = 16u << 20;        ///< bytes of the longest string, the output included
  std::size_t total_text_bytes = 256u << 20; ///< bytes of all strings of one render together
  std::size_t elements = 4u << 20;           ///< entries of all lists and dicts of one render
  std::uint64_t work = 20'000'000;           ///< units of add_work(), about one per operation
  int depth = 600;                           ///< nested evaluations, which bounds the stack
};

class runtime {
public:
  explicit runtime(const limits& bounds = {}) : bounds_(bounds) {}
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  [[noreturn]] void fail(std::string message) const {
    throw template_error{line, std::move(message)};
  }

  std::int64_t now_unix_s = 0; ///< the time that templates see; 0: the clock's time

  void add_work(std::uint64_t n = 1) {
    work_ += n;
    if (work_ > bounds_.work) fail("the template does too much work");
  }

  /// Counts towards the text limits; call before building a string of this size.
  void charge_text(std::size_t bytes);
  /// Counts towards the element limit; call before growing a list or dict.
  void charge_elements(std::size_t n);

  val make_text(text t);
  val make_text(std::string s) { return make_text(text(std::move(s))); }
  list_data* make_list(list_data::kind_t kind = list_data::list, std::vector<val> items = {});
  dict_data* make_dict();
  void set(dict_data& dict, val key, val value);
  template <class T, class... Args>
  T* make_object(Args&&... args) {
    charge_elements(1);
    auto owned = std::make_unique<T>(std::forward<Args>(args)...);
    T* raw = owned.get();
    objects_.push_back(std::move(owned));
    return raw;
  }
  static val undefined(std::string reason);

  /// The items of anything iterable: list, tuple, generator (once), dict keys, characters.
  std::vector<val> iterate(const val& v);

  int line = 0;

private:
  friend class depth_guard;

  limits bounds_;
  std::uint64_t work_ = 0;
  std::size_t text_bytes_ = 0;
  std::size_t elements_ = 0;
  int depth_ = 0;
  std::deque<list_data> lists_;
  std::deque<dict_data> dicts_;
  std::vector<std::unique_ptr<object>> objects_;
};

/// Counts one level of nesting until it is destroyed.
class depth_guard {
public:
  explicit depth_guard(runtime& rt) : rt_(rt) {
    if (rt_.depth_ >= rt_.bounds_.depth) rt_.fail("template nests too deep");
    ++rt_.depth_;
  }
  ~depth_guard() { --rt_.depth_; }
  depth_guard(const depth_guard&) = delete;
  depth_guard& operator=(const depth_guard&) = delete;

private:
  runtime& rt_;
};

} // namespace twill::models::jinja
