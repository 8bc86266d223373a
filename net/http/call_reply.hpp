// call_reply: turns the engine's events of one call (an API request that generates output) into the
// bytes of its HTTP reply. The functions are pure.
//
// A stream is sent as a head and chunks while events arrive (to HTTP/1.0 clients as plain bytes
// until the connection closes). A whole reply is written when the call has ended. An error before
// the first byte of a stream is sent with its HTTP status; a later error is sent as an event of the
// stream. A filler, which keeps a silent connection open (see append_filler()), counts as the first
// byte, and so does the event which only reports that a stored response was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http/reply_head.hpp"
#include "net/protocol/codec.hpp"

namespace twill::net {

class call_reply {
public:
  /// `first_key` is the key that engine_requests gave to the call's first request; the other
  /// requests have the keys that follow it.
  call_reply(std::unique_ptr<reply_encoder> encoder, bool stream, std::size_t n_requests,
             std::uint64_t first_key)
      : encoder_(std::move(encoder)), stream_(stream), remaining_(n_requests),
        first_key_(first_key) {}

  /// After `failed`, requests of the call that still run are to be cancelled.
  enum class state { running, over, failed };

  /// Appends what can be sent now.
  state on_events(std::vector<std::pair<std::uint64_t, actors::event>> events,
                  const reply_framing& how, std::string& out);
  /// True if the reply is a stream whose format has a filler, bytes that clients skip.
  bool has_filler() const { return stream_ && !encoder_->format().filler.empty(); }
  /// Appends a filler. Requires has_filler().
  void append_filler(const reply_framing& how, std::string& out);
  /// Ends the reply with an error: as a reply of its own, or as the last event of a stream that has
  /// begun.
  void fail(const api_error& error, const reply_framing& how, std::string& out);

  bool is_stream() const noexcept { return stream_; }
  /// Approximate bytes that a reply which is sent whole holds in memory so far.
  std::size_t gathered_bytes() const noexcept { return gathered_bytes_; }

private:
  void append_stream(std::string_view produced, bool over, const reply_framing& how,
                     std::string& out);

  std::unique_ptr<reply_encoder> encoder_;
  bool stream_;
  std::size_t remaining_; ///< requests that have not ended
  std::uint64_t first_key_;
  std::string body_; ///< the part of a whole reply that has been produced so far
  std::size_t gathered_bytes_ = 0;
  bool head_sent_ = false;
};

} // namespace twill::net
