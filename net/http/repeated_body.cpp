#include "net/http/repeated_body.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace twill::net {
namespace {

constexpr std::array<std::string_view, 3> prompts{"messages", "prompt", "input"};

bool equal(const value& a, const value& b);

/// Returns the members sorted by key. A client may send so many members that a linear search for
/// each would take hours.
std::vector<const value_object::value_type*> sorted(const value_object& object) {
  std::vector<const value_object::value_type*> members;
  members.reserve(object.size());
  for (const auto& member : object)
    members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  return members;
}

bool has_members_of(const value_object& all, const value_object& some) {
  const auto others = sorted(all);
  auto other = others.begin();
  for (const auto* member : sorted(some)) {
    while (other != others.end() && (*other)->first < member->first)
      ++other;
    if (other == others.end() || (*other)->first != member->first) return false;
    if (!equal(member->second, (*other)->second)) return false;
  }
  return true;
}

bool equal(const value& a, const value& b) {
  const auto* object = a.as_object();
  if (object != nullptr && b.as_object() != nullptr)
    return object->size() == b.as_object()->size() && has_members_of(*b.as_object(), *object);
  const auto* list = a.as_list();
  if (list != nullptr && b.as_list() != nullptr)
    return std::equal(list->begin(), list->end(), b.as_list()->begin(), b.as_list()->end(), equal);
  if (a == b) return true;
  const bool spelt_differently = (a.as_double() != nullptr) != (b.as_double() != nullptr);
  return spelt_differently && a.as_number() && a.as_number() == b.as_number();
}

} // namespace

bool repeats(const value& body, const value& asked) {
  const auto* said = body.as_object();
  const auto* before = asked.as_object();
  return said != nullptr && before != nullptr && has_members_of(*before, *said) &&
         std::all_of(prompts.begin(), prompts.end(), [&](std::string_view name) {
           return (body.find(name) == nullptr) == (asked.find(name) == nullptr);
         });
}

} // namespace twill::net
