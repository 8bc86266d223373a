#include "models/checkpoint/pytorch/pickle_machine.hpp"

#include <utility>

#include "models/checkpoint/pytorch/unpickle.hpp"

namespace twill::models::pytorch {

pickle_machine::pickle_machine() {
  objects_.push_back({object_kind::none, 0, {}, {}});
  objects_.push_back({object_kind::boolean, 0, {}, {}});
  objects_.push_back({object_kind::boolean, 1, {}, {}});
}

void pickle_machine::fail(errc code, std::string why) {
  if (!failure_) failure_ = failure{code, std::move(why)};
}

void pickle_machine::push(object o) {
  if (objects_.size() >= max_objects) {
    fail(errc::unsupported, "pickle: more than " + std::to_string(max_objects) + " objects");
    return push_none();
  }
  stack_.push_back(static_cast<object_id>(objects_.size()));
  objects_.push_back(std::move(o));
}

object_id pickle_machine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    fail(errc::bad_format, "pickle: an opcode finds nothing on the stack");
    return 0;
  }
  const object_id id = stack_.back();
  stack_.pop_back();
  return id;
}

std::vector<object_id> pickle_machine::pop_marked() {
  if (marks_.empty()) {
    fail(errc::bad_format, "pickle: an opcode finds no mark on the stack");
    return {};
  }
  const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<object_id> above(first, stack_.end());
  stack_.erase(first, stack_.end());
  marks_.pop_back();
  return above;
}

object_id pickle_machine::top(object_kind kind) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()) || at(stack_.back()).kind != kind) {
    fail(errc::bad_format, "pickle: an opcode finds an object of another kind on the stack");
    return 0;
  }
  return stack_.back();
}

void pickle_machine::remember(std::uint32_t index) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    return fail(errc::bad_format, "pickle: nothing to remember on the stack");
  if (memo_.size() >= max_objects)
    return fail(errc::unsupported, "pickle: more than " + std::to_string(max_objects) + " memos");
  memo_[index] = stack_.back();
}

void pickle_machine::recall(std::uint32_t index) {
  const auto it = memo_.find(index);
  if (it == memo_.end())
    return fail(errc::bad_format, "pickle: memo " + std::to_string(index) + " was never set");
  push_id(it->second);
}

object_id pickle_machine::result() {
  const object_id id = pop();
  if (!stack_.empty() || !marks_.empty())
    fail(errc::bad_format, "pickle: more than one object at its end");
  return id;
}

} // namespace twill::models::pytorch
