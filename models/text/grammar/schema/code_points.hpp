// code_points: a set of Unicode code points, as sorted ranges that neither touch nor overlap.
//
// A plain value type. Used for character classes of regular expressions and edges of automata.
#pragma once

#include <cstdint>
#include <vector>

namespace twill::models::grammar {

inline constexpr std::uint32_t last_code_point = 0x10ffff;

struct code_point_range {
  std::uint32_t first = 0;
  std::uint32_t last = 0; ///< inclusive
  bool operator==(const code_point_range&) const = default;
};

class code_points {
public:
  code_points() = default;
  code_points(std::uint32_t first, std::uint32_t last) : ranges_{{first, last}} {}
  explicit code_points(std::vector<code_point_range> ranges);

  static code_points all() { return {0, last_code_point}; }

  const std::vector<code_point_range>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(std::uint32_t c) const;
  /// True when every code point of `other` is in this set.
  bool covers(const code_points& other) const;

  code_points operator|(const code_points& other) const;
  code_points operator&(const code_points& other) const;
  code_points operator-(const code_points& other) const { return *this & ~other; }
  code_points operator~() const;
  bool operator==(const code_points&) const = default;

private:
  std::vector<code_point_range> ranges_;
};

} // namespace twill::models::grammar
