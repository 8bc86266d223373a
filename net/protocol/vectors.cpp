#include "net/protocol/vectors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace twill::net {
namespace {

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += double{a[i]} * double{b[i]};
  return sum;
}

/// The numbers as one sequence of bytes.
class number_bytes {
public:
  explicit number_bytes(std::span<const float> numbers) : numbers_(numbers) {}

  std::size_t size() const { return 4 * numbers_.size(); }
  /// The byte at index `i`; 0 beyond the end.
  std::uint32_t at(std::size_t i) const {
    if (i >= size()) return 0;
    return std::bit_cast<std::uint32_t>(numbers_[i / 4]) >> (8 * (i % 4)) & 255U;
  }

private:
  std::span<const float> numbers_;
};

} // namespace

std::vector<float> unit_vector(std::span<const float> of) {
  std::vector<float> scaled(of.begin(), of.end());
  const double length = std::sqrt(product(of, of));
  if (length > 0 && std::isfinite(length))
    for (float& x : scaled)
      x = static_cast<float>(double{x} / length);
  return scaled;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  const double lengths = std::sqrt(product(a, a)) * std::sqrt(product(b, b));
  return lengths > 0 ? std::clamp(product(a, b) / lengths, -1.0, 1.0) : 0;
}

void append_base64(std::string& out, std::span<const float> numbers) {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const number_bytes bytes(numbers);
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t three = bytes.at(i) << 16 | bytes.at(i + 1) << 8 | bytes.at(i + 2);
    const std::size_t left = bytes.size() - i;
    out += digits[three >> 18 & 63];
    out += digits[three >> 12 & 63];
    out += left > 1 ? digits[three >> 6 & 63] : '=';
    out += left > 2 ? digits[three & 63] : '=';
  }
}

} // namespace twill::net
