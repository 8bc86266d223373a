// gguf_metadata: the key-value section of a GGUF file for a recipe
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/twill-synth/names.hpp"

namespace twill::synth {

/// Little-endian values as GGUF stores them.
class gguf_buffer {
public:
  void u8(std::uint64_t x) { number(x, 1); }
  void u32(std::uint64_t x) { number(x, 4); }
  void u64(std::uint64_t x) { number(x, 8); }
  void text(std::string_view s) {
    u64(s.size());
    bytes_ += s;
  }
  void pad(std::size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0');
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

struct gguf_metadata {
  std::uint64_t count = 0; ///< number of pairs
  gguf_buffer pairs;
};

/// `architecture` is that of gguf_architecture().
gguf_metadata make_gguf_metadata(const recipe& r, const std::string& architecture);

} // namespace twill::synth
