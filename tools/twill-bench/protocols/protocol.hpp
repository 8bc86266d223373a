// protocol: one backend's request and reply formats, without sockets.
//
// A protocol is built once and shared by all I/O threads: every function is const and pure. Reading
// never fails hard: what can't be understood is reported in `update::malformed`.
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

/// What was said before in a conversation.
struct spoken_turn {
  std::string asked, answered;
};

/// One prompt of the workload, as ids or as text.
struct prompt {
  std::vector<std::int32_t> ids; ///< sent when not empty
  std::string text;
  std::int32_t input_tokens = 0;  ///< expected prompt length
  std::int32_t output_tokens = 0; ///< asked for
  bool follows = false; ///< the next turn of the conversation that the prompt before it is part of
  std::vector<spoken_turn> earlier; ///< of a conversation in text, oldest first
};

/// The whole conversation as one text, for backends that know no roles.
std::string whole_text(const prompt& asked);

/// The contents of one event, or of one whole reply. Views point into the payload.
struct update {
  std::optional<std::size_t> owner; ///< WebSocket: the request it belongs to, when it says so
  bool content = false;             ///< brought output: text, ids, or an empty piece of text
  std::int32_t tokens = -1;         ///< how many ids it brought; -1: it does not say
  std::string_view text_json;       ///< the text as a JSON string value
  std::string_view ids_json;        ///< the ids as a JSON array, where the backend sends them
  bool done = false;                ///< nothing follows
  bool malformed = false;           ///< not what this backend sends
  std::string_view finish_reason;   ///< stop, length, ...
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

  /// The HTTP body or the WebSocket message that asks for request number `id`.
  virtual std::string request(const prompt& asked, std::size_t id) const = 0;
  /// Reads a streamed event.
  virtual update read_event(std::string_view payload) const = 0;
  /// Reads a whole (not streamed) reply.
  virtual update read_whole(std::string_view body) const = 0;

  /// WebSocket only: the message that cancels a request; empty when there is none.
  virtual std::string cancel(std::size_t /*id*/) const { return {}; }
};

/// By --backend's name; throws std::invalid_argument naming the known ones.
std::unique_ptr<protocol> make_protocol(const serve_options& options);
std::vector<std::string> backend_names();

} // namespace twill::bench
