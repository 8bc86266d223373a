// staging_buffers: device buffers through which a stream's contents pass, and what each of them is
// doing. The weight ring, the KV stream and the hidden stream share this state machine:
//
//   free ----> filling ----> ready ----> in_use ----> storing ----> ready or free
//                              ^------------'  (nothing to store)
//
// A stream numbers its contents (a transfer group of weights, the KV of one layer and micro-batch,
// a chunk of hidden states). It begins the copies itself; this class counts them.
//
// Thread safety: every call but lock() needs the lock that lock() returns. Workers end copies, the
// device's thread does everything else. Buffers have stable addresses.
// Invariants: a content is in at most one buffer; a buffer in use, being filled or being stored is
// not given to another content. A copy that failed fails every later acquire().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "models/errc.hpp"

namespace twill::models::offload {

enum class buffer_state : std::uint8_t { free, filling, ready, in_use, storing };

struct staging_buffer {
  unsigned char* memory = nullptr; ///< device memory that the stream owns
  gpu::marker last_use; ///< the work on the device that must end before the buffer is overwritten
  std::int64_t content = -1;
  buffer_state state = buffer_state::free;
  bool awaited = false; ///< the content will be acquired soon; others get this buffer last

private:
  friend class staging_buffers;
  std::int32_t copies_left_ = 0;
  buffer_state after_copies_ = buffer_state::ready;
};

class staging_buffers {
public:
  using guard = std::unique_lock<std::mutex>;

  /// Cuts `memory` into `n` buffers, `bytes` apart. Called once, before any other thread knows
  /// this.
  void create(unsigned char* memory, std::int32_t n, std::int64_t bytes);

  guard lock() const { return guard(mutex_); }
  const std::vector<std::unique_ptr<staging_buffer>>& all() const { return buffers_; }

  /// The buffer that holds the content, or is being filled with it or stored from it; null if none.
  staging_buffer* find(std::int64_t content) const;

  /// A buffer that may take another content: a free one, else a ready one that nobody awaits, else,
  /// with `even_awaited`, any ready one. Null if there is none.
  staging_buffer* idle(bool even_awaited) const;

  /// The buffer is about to hold `content`, which replaces what it held; no copy is begun.
  void assign(staging_buffer& buffer, std::int64_t content);

  /// The stream posts `n_copies` copies into the buffer (`during` is filling) or out of it
  /// (storing). With the end of the last one the buffer becomes `after`; with none it is so at
  /// once.
  void begin_copies(staging_buffer& buffer, buffer_state during, std::int32_t n_copies,
                    buffer_state after = buffer_state::ready);
  /// One copy has ended. True: it was the last of its buffer.
  bool end_copy(staging_buffer& buffer, const result<nothing>& outcome);

  /// Waits until the content is ready and takes it into use. Where no buffer has the content,
  /// `fill` is called with an idle buffer as soon as there is one; it assigns the content and
  /// begins the copies. An empty `fill` says that the stream has seen to that already.
  result<staging_buffer*> acquire(guard& held, std::int64_t content,
                                  const std::function<void(staging_buffer&)>& fill = {});

  /// Ends the use of a buffer whose content need not be stored: it stays (ready) or not (free).
  void end_use(staging_buffer& buffer, buffer_state after);

  /// How long acquire() has waited in all.
  double waited_seconds() const { return waited_seconds_; }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<staging_buffer>> buffers_;
  std::optional<failure> failed_; ///< the first copy that failed
  double waited_seconds_ = 0;
};

} // namespace twill::models::offload
