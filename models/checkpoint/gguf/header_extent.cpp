#include "models/checkpoint/gguf/header_extent.hpp"

#include <array>
#include <cstring>
#include <limits>

namespace twill::models::gguf {
namespace {

constexpr std::uint32_t string_type = 8, array_type = 9;
/// bytes of each type, by its number; 0: no fixed size
constexpr std::array<std::uint8_t, 13> type_bytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/// Reads the headers of a GGUF file in order, without storing them. After a step beyond the end of
/// the given bytes, all further steps do nothing.
class header_walk {
public:
  explicit header_walk(std::span<const std::byte> head) : head_(head) {}

  std::uint64_t position() const { return at_; }
  bool goes_on() const { return !bad_ && at_ <= head_.size(); }
  bool is_bad() const { return bad_; }
  void refuse() { bad_ = true; }

  void skip(std::uint64_t n) {
    if (!goes_on()) return;
    // No file is as long as this, so the header is corrupt.
    if (n > std::numeric_limits<std::uint64_t>::max() / 4 - at_) return refuse();
    at_ += n;
  }
  /// Reads a number; 0 if it lies beyond the end of the given bytes.
  template <class T>
  T read() {
    T value{};
    const auto from = at_;
    skip(sizeof value);
    if (goes_on()) std::memcpy(&value, head_.data() + from, sizeof value);
    return value;
  }
  void skip_string() { skip(read<std::uint64_t>()); }

private:
  std::span<const std::byte> head_;
  std::uint64_t at_ = 0;
  bool bad_ = false;
};

void skip_values(header_walk& walk, std::uint32_t type, std::uint64_t count) {
  if (type < type_bytes.size() && type_bytes[type] > 0) {
    if (count > std::numeric_limits<std::uint64_t>::max() / 16) return walk.refuse();
    return walk.skip(count * type_bytes[type]);
  }
  if (type != string_type) return walk.refuse();
  for (std::uint64_t i = 0; i < count && walk.goes_on(); ++i)
    walk.skip_string();
}

void skip_pair(header_walk& walk) {
  walk.skip_string();
  const auto type = walk.read<std::uint32_t>();
  if (type != array_type) return skip_values(walk, type, 1);
  const auto element = walk.read<std::uint32_t>();
  const auto count = walk.read<std::uint64_t>();
  if (walk.goes_on()) skip_values(walk, element, count);
}

void skip_tensor(header_walk& walk) {
  walk.skip_string();
  const auto dimensions = walk.read<std::uint32_t>();
  if (dimensions > 4) return walk.refuse();
  walk.skip(dimensions * sizeof(std::uint64_t) + sizeof(std::uint32_t) + sizeof(std::uint64_t));
}

} // namespace

std::uint64_t header_extent(std::span<const std::byte> head) {
  header_walk walk(head);
  if (walk.read<std::uint32_t>() != 0x46554747 && walk.goes_on()) return head.size();
  walk.skip(sizeof(std::uint32_t));
  const auto tensors = walk.read<std::uint64_t>();
  const auto pairs = walk.read<std::uint64_t>();
  for (std::uint64_t i = 0; i < pairs && walk.goes_on(); ++i)
    skip_pair(walk);
  for (std::uint64_t i = 0; i < tensors && walk.goes_on(); ++i)
    skip_tensor(walk);
  return walk.is_bad() ? head.size() : walk.position();
}

} // namespace twill::models::gguf
