// call_reply: turns the engine's events of one call into the bytes of its HTTP reply. Pure.
//
// A stream becomes a head and chunks as events come (for HTTP/1.0 plain bytes until the close); a
// whole reply is written when the call is over. An error before the first byte of a stream still
// has its status code; later it is an event of the stream. A filler is such a byte, and so
// is an event that says no more than that a stored response was found.
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
  /// `first_key`: the key of the call's first request; the others follow it.
  call_reply(std::unique_ptr<reply_encoder> encoder, bool stream, std::size_t n_requests,
             std::uint64_t first_key)
      : encoder_(std::move(encoder)), stream_(stream), remaining_(n_requests),
        first_key_(first_key) {}

  enum class state { running, over, failed }; ///< failed: requests that still run are useless

  /// Appends what can be sent now.
  state on_events(std::vector<std::pair<std::uint64_t, actors::event>> events,
                  const reply_framing& how, std::string& out);
  /// Whether clients skip something in this stream: false for a reply that is sent whole.
  bool has_filler() const { return stream_ && !encoder_->format().filler.empty(); }
  /// Appends what clients skip. Only where there is such a thing.
  void append_filler(const reply_framing& how, std::string& out);
  /// Ends the reply with an error, in the form that is still possible.
  void fail(const api_error& error, const reply_framing& how, std::string& out);

  bool is_stream() const noexcept { return stream_; }
  /// About how much a reply that is sent whole holds by now.
  std::size_t gathered_bytes() const noexcept { return gathered_bytes_; }

private:
  void append_stream(std::string_view produced, bool over, const reply_framing& how,
                     std::string& out);

  std::unique_ptr<reply_encoder> encoder_;
  bool stream_;
  std::size_t remaining_; ///< requests that have not ended
  std::uint64_t first_key_;
  std::string body_; ///< what a whole reply has produced so far
  std::size_t gathered_bytes_ = 0;
  bool head_sent_ = false;
};

} // namespace twill::net
