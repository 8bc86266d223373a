// The places of a text file that tests damage: each byte of its beginning, its middle and its end,
// and a few places in between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/damage.hpp"

namespace twill::test {

/// Parts, in order, that cover `size` bytes. At the beginning, in the middle and at the end,
/// `dense` bytes are cut into parts so small that faults_after_damage() (tests/support/damage.hpp)
/// damages every byte of them.
inline std::vector<part> parts_of_text(std::size_t size, std::size_t dense) {
  std::vector<sized> sizes;
  std::size_t at = 0;
  const auto add_until = [&](std::size_t end, std::size_t most) {
    for (end = std::min(end, size); at < end;) {
      const std::size_t n = std::min(most, end - at);
      sizes.push_back({"bytes from " + std::to_string(at), n});
      at += n;
    }
  };
  add_until(dense, 90);
  if (size > 2 * dense) {
    const std::size_t middle = size / 2;
    add_until(std::max(at, middle - std::min(middle, dense / 2)), size);
    add_until(middle + dense / 2, 90);
    add_until(std::max(at, size - dense), size);
  }
  add_until(size, 90);
  return parts_in_order(sizes);
}

} // namespace twill::test
