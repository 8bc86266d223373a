// pickle_machine: the state of an interpreter that reads one pickle: its objects, and the stack,
// marks and memo of the pickle protocol. An object of this class is used by one thread.
//
// Invariants: object ids on the stack, in the memo and inside objects are indices into objects_.
// The machine keeps the first failure of its member functions, and stays usable after it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/errc.hpp"

namespace twill::models::pytorch {

using object_id = std::uint32_t;

enum class object_kind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  tuple,
  list,
  dictionary, ///< items: key, value, key, value, ...
  global,     ///< a known name; integer: its index
  storage,    ///< items: type (a global), key (text), values (integer)
  tensor,     ///< items: storage, offset (integer), shape (tuple), strides (tuple)
};

struct object {
  object_kind kind = object_kind::none;
  std::int64_t integer = 0;
  std::string_view text;
  std::vector<object_id> items;
};

class pickle_machine {
public:
  pickle_machine();

  bool failed() const { return failure_.has_value(); }
  failure take_failure() { return std::move(*failure_); }
  void fail(errc code, std::string why);

  const object& at(object_id id) const { return objects_[id]; }
  std::vector<object_id>& items(object_id id) { return objects_[id].items; }

  void push(object o);
  void push_id(object_id id) { stack_.push_back(id); }
  void push_none() { push_id(0); }
  void push_boolean(bool b) { push_id(b ? 2 : 1); }
  void mark() { marks_.push_back(stack_.size()); }

  /// Removes and returns the top; fails and returns none when nothing is above the last mark.
  object_id pop();
  /// Removes the last mark and returns what lay above it.
  std::vector<object_id> pop_marked();
  /// The top, which stays in place; fails when it is of another kind.
  object_id top(object_kind kind);

  void remember(std::uint32_t index);
  void recall(std::uint32_t index);
  void remember_next() { remember(static_cast<std::uint32_t>(memo_.size())); }

  /// The only object that is left at the end.
  object_id result();

private:
  std::vector<object> objects_;
  std::vector<object_id> stack_;
  std::vector<std::size_t> marks_; ///< stack heights
  std::unordered_map<std::uint32_t, object_id> memo_;
  std::optional<failure> failure_;
};

} // namespace twill::models::pytorch
