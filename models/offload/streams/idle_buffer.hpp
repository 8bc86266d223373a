// idle_buffer: which device buffer of a stream is filled next. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace twill::models::offload {

/// What a buffer of a stream is about.
enum class buffer_state : std::uint8_t { free, filling, ready, in_use, storing };

/// A free one, else one whose content is at home as well: nobody waits for it, if that can be.
/// Buffer has `now` and `awaited`: loaded ahead, not yet acquired. Null: none.
template <class Buffer>
Buffer* idle_buffer(const std::vector<std::unique_ptr<Buffer>>& buffers, bool even_awaited) {
  Buffer* awaited = nullptr;
  Buffer* idle = nullptr;
  for (const auto& b : buffers) {
    if (b->now == buffer_state::free) return b.get();
    if (b->now == buffer_state::ready) (b->awaited ? awaited : idle) = b.get();
  }
  return idle != nullptr || !even_awaited ? idle : awaited;
}

} // namespace twill::models::offload
