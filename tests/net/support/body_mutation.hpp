// Applies random operations to JSON bodies: members are replaced, removed, added, nested and
// repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "config/base/value.hpp"
#include "tests/support/operations.hpp"

namespace twill::testing {

/// A value that a body might have in the wrong place.
inline value odd_value(std::uint32_t which) {
  static const std::vector<value> odd = {
      value(),
      value(true),
      value(false),
      value(0),
      value(-1),
      value(1),
      value(2),
      value(0.5),
      value(-0.5),
      value(1e300),
      value(-1e300),
      value(std::numeric_limits<std::int64_t>::max()),
      value(std::numeric_limits<std::int64_t>::min()),
      value(std::int64_t{1} << 32),
      value::whole_number("123456789012345678901234567890"),
      value(""),
      value("text"),
      value("\xF0\x9F\x8C\x8D"),
      value("-100"),
      value(std::string(5000, 'x')),
      value(value_list{}),
      value(value_object{}),
      value(value_list{value(), value("a"), value(1)}),
      value(value_list{value(1), value(2), value(3)}),
      value(value_list{value("a"), value("b")}),
      value(value_list{value(value_list{value(1), value(false)})}),
      value(value_list{value(value_list{value("ab"), value(0.5)})}),
      value(value_object{{"type", "json"}, {"value", value_object{}}}),
      value(value_object{{"prompt_string", "a"}}),
      value(value_list(300, value("a"))),
      value(value_list(2000, value(1))),
      value(value_object{{"1", 1}, {"a", false}}),
  };
  return odd[which % odd.size()];
}

inline void mutate(value& body, const test::operation& op, const std::vector<std::string>& names) {
  if (const auto* list = body.as_list(); list != nullptr && !list->empty()) {
    auto changed = *list;
    auto& entry = changed[op.a % changed.size()];
    if (op.kind % 3 == 0)
      mutate(entry, {op.kind / 3, op.b, op.c, op.a}, names);
    else if (op.kind % 3 == 1)
      entry = odd_value(op.b);
    else
      changed.push_back(odd_value(op.b));
    body = std::move(changed);
    return;
  }
  const auto* object = body.as_object();
  if (object == nullptr) {
    body = odd_value(op.b);
    return;
  }
  auto changed = *object;
  if (op.kind % 4 == 3 || changed.empty()) {
    changed.emplace_back(names[op.a % names.size()], odd_value(op.b));
    merge_repeated_keys(changed);
  } else {
    const auto place = static_cast<std::ptrdiff_t>(op.a % changed.size());
    auto& member = changed[static_cast<std::size_t>(place)].second;
    if (op.kind % 4 == 0)
      mutate(member, {op.kind / 4, op.b, op.c, op.a}, names);
    else if (op.kind % 4 == 1)
      member = odd_value(op.b);
    else
      changed.erase(changed.begin() + place);
  }
  body = std::move(changed);
}

} // namespace twill::testing
