#include "net/http/repeated_body.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace twill::net {
namespace {

constexpr std::array<std::string_view, 3> prompts{"messages", "prompt", "input"};

bool equal(const value& a, const value& b);

bool has_members_of(const value& all, const value_object& some) {
  return std::all_of(some.begin(), some.end(), [&all](const auto& member) {
    const auto* other = all.find(member.first);
    return other != nullptr && equal(member.second, *other);
  });
}

bool equal(const value& a, const value& b) {
  const auto* object = a.as_object();
  if (object != nullptr && b.as_object() != nullptr)
    return object->size() == b.as_object()->size() && has_members_of(b, *object);
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
  return said != nullptr && has_members_of(asked, *said) &&
         std::all_of(prompts.begin(), prompts.end(), [&](std::string_view name) {
           return (body.find(name) == nullptr) == (asked.find(name) == nullptr);
         });
}

} // namespace twill::net
