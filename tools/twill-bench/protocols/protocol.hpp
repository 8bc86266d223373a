// protocol: the formats of one backend's requests and replies, without sockets.
//
// A protocol object is constructed once and shared by all I/O threads: all its functions are const
// and pure. Reading a reply never throws; a reply that can't be understood sets
// `update::malformed`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

/// An earlier prompt of a conversation and its answer.
struct spoken_turn {
  std::string asked, answered;
};

/// One prompt of the workload, as ids or as text.
struct prompt {
  std::vector<std::int32_t> ids; ///< sent instead of a text when not empty
  std::string text;
  std::int32_t input_tokens = 0;  ///< expected prompt length
  std::int32_t output_tokens = 0; ///< the output length asked for
  /// The next turn of the conversation that the previous prompt in the list belongs to.
  bool follows = false;
  std::vector<spoken_turn> earlier; ///< of a conversation in text, oldest first
};

/// The whole conversation as one text, for backends without roles.
std::string whole_text(const prompt& asked);

/// The contents of one event or of one whole reply. Views point into the payload.
struct update {
  /// WebSocket only: the request that the event belongs to, when the event names it.
  std::optional<std::size_t> owner;
  /// The event has output: text, ids, or an empty piece of text.
  bool content = false;
  std::int32_t tokens = -1;   ///< number of ids in the event; -1: not given
  std::string_view text_json; ///< the text as a JSON string value
  std::string_view ids_json;  ///< the ids as a JSON array, where the backend sends them
  bool done = false;          ///< no further event follows
  /// The payload is not in the format of this backend.
  bool malformed = false;
  std::string_view finish_reason;                          ///< stop, length, ...
  std::optional<std::int64_t> input_tokens, output_tokens; ///< usage
  bool failed = false;
  std::string_view error_json; ///< the error object, for the report
};

enum class wire { http, websocket };

class protocol {
public:
  virtual ~protocol() = default;

  virtual wire transport() const = 0;
  virtual std::string default_endpoint() const = 0;
  virtual bool takes_ids() const = 0;

  /// The HTTP body or the WebSocket message of request number `id`.
  virtual std::string request(const prompt& asked, std::size_t id) const = 0;
  /// Reads a streamed event.
  virtual update read_event(std::string_view payload) const = 0;
  /// Reads a whole (not streamed) reply.
  virtual update read_whole(std::string_view body) const = 0;

  /// WebSocket only: the message that cancels a request; empty when there is none.
  virtual std::string cancel(std::size_t /*id*/) const { return {}; }
};

/// Makes the protocol that `options.backend` names. Throws std::invalid_argument, which lists the
/// known names.
std::unique_ptr<protocol> make_protocol(const serve_options& options);
std::vector<std::string> backend_names();

} // namespace twill::bench
