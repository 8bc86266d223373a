// cursor: bounds-checked little-endian reading of a byte range.
//
// Not thread-safe, like any iterator. Every read either yields a value that lies wholly inside the
// range or marks the cursor failed; after that all reads yield zero, so callers may check once per
// group of reads. Nothing is allocated here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace twill::models::gguf {

class cursor {
public:
  explicit cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  template <class T>
  T read() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (const std::byte* at = take(sizeof(T))) std::memcpy(&value, at, sizeof(T));
    return value;
  }

  /// Reads a u64 length and then that many bytes; the text refers to the range.
  std::string_view read_string() {
    const auto length = read<std::uint64_t>();
    const std::byte* at = take(length);
    if (at == nullptr) return {};
    return {reinterpret_cast<const char*>(at), static_cast<std::size_t>(length)};
  }

private:
  const std::byte* take(std::uint64_t n) {
    if (failed_ || n > remaining()) {
      failed_ = true;
      return nullptr;
    }
    const std::byte* at = bytes_.data() + position_;
    position_ += n;
    return at;
  }

  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
  bool failed_ = false;
};

} // namespace twill::models::gguf
