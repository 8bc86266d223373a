#include "models/offload/streams/staging_buffers.hpp"

#include <chrono>

#include "config/base/assert.hpp"

namespace twill::models::offload {

void staging_buffers::create(unsigned char* memory, std::int32_t n, std::int64_t bytes) {
  for (std::int32_t i = 0; i < n; ++i) {
    buffers_.push_back(std::make_unique<staging_buffer>());
    buffers_.back()->memory = memory + i * bytes;
  }
}

staging_buffer* staging_buffers::find(std::int64_t content) const {
  for (const auto& b : buffers_)
    if (b->state != buffer_state::free && b->content == content) return b.get();
  return nullptr;
}

staging_buffer* staging_buffers::idle(bool even_awaited) const {
  staging_buffer* awaited = nullptr;
  staging_buffer* ready = nullptr;
  for (const auto& b : buffers_) {
    if (b->state == buffer_state::free) return b.get();
    if (b->state == buffer_state::ready) (b->awaited ? awaited : ready) = b.get();
  }
  return ready != nullptr || !even_awaited ? ready : awaited;
}

void staging_buffers::assign(staging_buffer& buffer, std::int64_t content) {
  TWILL_ASSERT(buffer.state == buffer_state::free || buffer.state == buffer_state::ready,
               "staging_buffers: the buffer is busy");
  buffer.content = content;
  buffer.state = buffer_state::ready;
}

void staging_buffers::begin_copies(staging_buffer& buffer, buffer_state during,
                                   std::int32_t n_copies, buffer_state after) {
  buffer.state = n_copies > 0 ? during : after;
  buffer.copies_left_ = n_copies;
  buffer.after_copies_ = after;
}

bool staging_buffers::end_copy(staging_buffer& buffer, const result<nothing>& outcome) {
  if (!outcome.ok() && !failed_) failed_ = outcome.error();
  const bool last = --buffer.copies_left_ == 0;
  if (last) buffer.state = buffer.after_copies_;
  if (last || failed_) changed_.notify_all();
  return last;
}

result<staging_buffer*> staging_buffers::acquire(guard& held, std::int64_t content,
                                                 const std::function<void(staging_buffer&)>& fill) {
  const auto began = std::chrono::steady_clock::now();
  staging_buffer* buffer = nullptr;
  changed_.wait(held, [&] {
    if (failed_) return true;
    buffer = find(content);
    if (buffer == nullptr && fill) {
      buffer = idle(true);
      if (buffer != nullptr) fill(*buffer);
    }
    return buffer != nullptr && buffer->state == buffer_state::ready;
  });
  waited_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (failed_) return *failed_;
  buffer->state = buffer_state::in_use;
  buffer->awaited = false;
  return buffer;
}

void staging_buffers::end_use(staging_buffer& buffer, buffer_state after) {
  TWILL_ASSERT(buffer.state == buffer_state::in_use, "staging_buffers: the buffer is not in use");
  buffer.state = after;
  changed_.notify_all();
}

} // namespace twill::models::offload
