// gguf_head: the part of a GGUF file (version 3) that precedes the bytes of the tensors: keys with
// their values, and the list of tensors
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
//
// The objects are plain values. Only one thread at a time may use each of them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twill::synth {

/// The bytes of each tensor begin at a multiple of this, counted from the end of the head.
inline constexpr std::int64_t gguf_alignment = 32;

/// `n` rounded up to the next multiple of gguf_alignment.
constexpr std::int64_t gguf_aligned(std::int64_t n) {
  return (n + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
}

/// Types of values, with the numbers of the GGUF specification.
enum class gguf_type : std::uint32_t {
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9
};

/// A byte buffer to which little-endian values are appended as GGUF stores them.
class gguf_buffer {
public:
  void u8(std::uint64_t x) { number(x, 1); }
  void u32(std::uint64_t x) { number(x, 4); }
  void u64(std::uint64_t x) { number(x, 8); }
  void f32(float x) { u32(std::bit_cast<std::uint32_t>(x)); }
  void text(std::string_view s) {
    u64(s.size());
    bytes_ += s;
  }
  void append(std::string_view bytes) { bytes_ += bytes; }
  const std::string& bytes() const { return bytes_; }

private:
  void number(std::uint64_t x, int n) {
    for (int i = 0; i < n; ++i)
      bytes_ += static_cast<char>(x >> (8 * i) & 0xffU);
  }
  std::string bytes_;
};

/// The key-value pairs of the head.
class gguf_pairs {
public:
  void integer(const std::string& name, std::int64_t x) {
    key(name, gguf_type::u32);
    out_.u32(static_cast<std::uint64_t>(x));
  }
  void number(const std::string& name, double x) {
    key(name, gguf_type::f32);
    out_.f32(static_cast<float>(x));
  }
  void text(const std::string& name, std::string_view s) {
    key(name, gguf_type::string);
    out_.text(s);
  }
  void flag(const std::string& name, bool b) {
    key(name, gguf_type::boolean);
    out_.u8(b ? 1 : 0);
  }
  /// Begins a list of `n` items; the caller must then append the items to out().
  void list(const std::string& name, gguf_type of, std::size_t n) {
    key(name, gguf_type::array);
    out_.u32(static_cast<std::uint32_t>(of));
    out_.u64(n);
  }
  gguf_buffer& out() { return out_; }
  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return out_.bytes(); }

private:
  void key(const std::string& name, gguf_type t) {
    ++count_;
    out_.text(name);
    out_.u32(static_cast<std::uint32_t>(t));
  }
  std::uint64_t count_ = 0;
  gguf_buffer out_;
};

struct gguf_tensor_entry {
  std::string name;
  std::vector<std::int64_t> shape; ///< in GGUF's order, innermost dimension first
  std::uint32_t kind = 0;          ///< the id of a gguf_kind
  std::int64_t bytes = 0;          ///< without the padding that aligns the next tensor
};

/// Returns the bytes of the head, padded to gguf_alignment. The caller must write the tensors'
/// bytes after it, in the order of `tensors`, each tensor padded to gguf_alignment.
std::string make_gguf_head(const gguf_pairs& pairs, const std::vector<gguf_tensor_entry>& tensors);

} // namespace twill::synth
