#include "models/text/grammar/schema/code_points.hpp"

#include <algorithm>
#include <utility>

namespace twill::models::grammar {

code_points::code_points(std::vector<code_point_range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  }
}

bool code_points::contains(std::uint32_t c) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                      [](std::uint32_t x, const auto& r) { return x < r.first; });
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

bool code_points::covers(const code_points& other) const {
  return (other - *this).empty();
}

code_points code_points::operator|(const code_points& other) const {
  auto both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return code_points(std::move(both));
}

code_points code_points::operator&(const code_points& other) const {
  code_points out;
  for (std::size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
    const auto &a = ranges_[i], &b = other.ranges_[j];
    const auto first = std::max(a.first, b.first), last = std::min(a.last, b.last);
    if (first <= last) out.ranges_.push_back({first, last});
    a.last < b.last ? ++i : ++j;
  }
  return out;
}

code_points code_points::operator~() const {
  code_points out;
  std::uint32_t next = 0;
  for (const auto& range : ranges_) {
    if (range.first > next) out.ranges_.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= last_code_point) out.ranges_.push_back({next, last_code_point});
  return out;
}

} // namespace twill::models::grammar
