#include "config/base/value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <system_error>

namespace twill {

value value::whole_number(std::string_view digits) {
  std::int64_t fits = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, fits);
  if (read.ec == std::errc{}) return value(fits);
  return value(big_integer{std::string(digits)});
}

std::optional<double> value::as_number() const noexcept {
  if (const auto* i = as_int()) return static_cast<double>(*i);
  if (const auto* d = as_double()) return *d;
  const auto* big = as_big();
  if (big == nullptr) return std::nullopt;
  return nearest_double(*big);
}

double nearest_double(const big_integer& number) noexcept {
  const std::string& digits = number.digits;
  double nearest = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), nearest);
  if (read.ec == std::errc{}) return nearest;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  return digits.front() == '-' ? -infinite : infinite;
}

int compare(const big_integer& a, const big_integer& b) noexcept {
  const bool negative = a.digits.front() == '-';
  if (negative != (b.digits.front() == '-')) return negative ? -1 : 1;
  const int order = a.digits.size() != b.digits.size()
                        ? (a.digits.size() < b.digits.size() ? -1 : 1)
                        : a.digits.compare(b.digits);
  const int sign = order < 0 ? -1 : order > 0 ? 1 : 0;
  return negative ? -sign : sign;
}

void merge_repeated_keys(value_object& members) {
  constexpr std::size_t few = 16;
  const auto repeats_one_before = [&](std::size_t i) {
    for (std::size_t k = 0; k < i; ++k)
      if (members[k].first == members[i].first) return true;
    return false;
  };
  if (members.size() <= few) {
    bool any = false;
    for (std::size_t i = 1; i < members.size() && !any; ++i)
      any = repeats_one_before(i);
    if (!any) return;
  }
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return members[a].first < members[b].first;
  });
  std::vector<bool> dropped(members.size(), false);
  bool any = false;
  std::size_t first = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (members[order[i]].first != members[order[first]].first) {
      first = i;
      continue;
    }
    members[order[first]].second = std::move(members[order[i]].second);
    dropped[order[i]] = any = true;
  }
  if (!any) return;
  value_object kept;
  kept.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i)
    if (!dropped[i]) kept.push_back(std::move(members[i]));
  members = std::move(kept);
}

} // namespace twill
