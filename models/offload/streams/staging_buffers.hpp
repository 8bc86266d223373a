// staging_buffers: device buffers through which a stream's contents pass, with the state of each
// buffer. The weight ring, the KV stream and the hidden stream share this state machine:
//
//   free ----> filling ----> ready ----> in_use ----> storing ----> ready or free
//                              ^------------'  (nothing to store)
//
// A stream numbers its contents (a transfer group of weights, the KV of one layer and micro-batch,
// a chunk of hidden states). The stream begins the copies itself; this class only counts them.
//
// Thread safety: the caller of every function except lock() must hold the lock that lock() returns.
// Workers call end_copy(); the device's thread makes all other calls. Buffers have stable
// addresses. Invariants: a content is in at most one buffer; a buffer that is in use, being filled
// or being stored is not given to another content. After a copy has failed, every acquire() fails.
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
  bool awaited = false; ///< the content will be acquired soon, so this buffer is the last choice
                        ///< for another content

private:
  friend class staging_buffers;
  std::int32_t copies_left_ = 0;
  buffer_state after_copies_ = buffer_state::ready;
};

class staging_buffers {
public:
  using guard = std::unique_lock<std::mutex>;

  /// Divides `memory` into `n` buffers of `bytes` each. Call it once, before any other thread uses
  /// this object.
  void create(unsigned char* memory, std::int32_t n, std::int64_t bytes);

  guard lock() const { return guard(mutex_); }
  const std::vector<std::unique_ptr<staging_buffer>>& all() const { return buffers_; }

  /// The buffer that holds the content, or is being filled with it or stored from it; null if none.
  staging_buffer* find(std::int64_t content) const;

  /// A buffer that may take another content: a free buffer; else a ready buffer whose content will
  /// not be acquired soon (staging_buffer::awaited is false); else, with `even_awaited`, any ready
  /// buffer. Null if there is none.
  staging_buffer* idle(bool even_awaited) const;

  /// Declares that the buffer will hold `content` instead of its current content. Begins no copy.
  void assign(staging_buffer& buffer, std::int64_t content);

  /// Declares that the stream posts `n_copies` copies into the buffer (`during` is filling) or out
  /// of the buffer (`during` is storing). The buffer's state becomes `after` when the last copy
  /// ends, or at once if `n_copies` is 0.
  void begin_copies(staging_buffer& buffer, buffer_state during, std::int32_t n_copies,
                    buffer_state after = buffer_state::ready);
  /// Reports that one copy has ended. Returns true if it was the buffer's last copy.
  bool end_copy(staging_buffer& buffer, const result<nothing>& outcome);

  /// Waits until the content is ready and marks its buffer as in use. If no buffer has the content,
  /// `fill` is called with an idle buffer as soon as there is one; `fill` must assign the content
  /// and begin the copies. An empty `fill` means that the stream has already begun or planned the
  /// copies.
  result<staging_buffer*> acquire(guard& held, std::int64_t content,
                                  const std::function<void(staging_buffer&)>& fill = {});

  /// Ends the use of a buffer whose content need not be stored. With `after` = ready the content
  /// stays in the buffer; with `after` = free it is discarded.
  void end_use(staging_buffer& buffer, buffer_state after);

  /// The total time that acquire() has waited.
  double waited_seconds() const { return waited_seconds_; }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<staging_buffer>> buffers_;
  std::optional<failure> failed_; ///< the first copy that failed
  double waited_seconds_ = 0;
};

} // namespace twill::models::offload
