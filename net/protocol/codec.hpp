// codec: turns a request body into a `call`, without sockets and without Beast.
//
// A call holds the engine requests to submit and the encoder that turns their events into the
// reply. Sessions and batches only move bytes and need not know the API of a call. Calls are plain
// values; only one strand or thread may use a call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/value.hpp"
#include "config/options.hpp"
#include "net/api_error.hpp"
#include "net/connection/event_source.hpp"
#include "net/stored/stored_head.hpp"

namespace twill::net {

struct remembered_response;

/// A function that returns the response whose id is `id`, the value of `previous_response_id`, if
/// the tenant may continue that response. Otherwise it returns null.
using find_response = std::function<std::shared_ptr<const remembered_response>(
    const std::string& id, const std::string& tenant)>;

/// What a codec may read, besides the body, while it parses a request.
struct codec_context {
  const actors::model_info& model;
  const config::limit_options& limits;
  const actors::engine_port& engine; ///< detokenizes an echoed prompt
  const find_response& find_previous;
  const std::string& tenant;
  const std::string& server_name; ///< the option `server.name`, which becomes part of reply ids
};

/// HTTP properties of a streamed reply.
struct stream_format {
  std::string_view content_type = "text/event-stream; charset=utf-8";
  /// Bytes to write when the stream has been idle for long, to keep the connection open. Empty if
  /// the format has nothing that clients skip. The default is a comment of server-sent events (the
  /// HTML standard, section 9.2).
  std::string_view filler = ": keep-alive\n\n";
};

/// Turns the events of a call's requests into the bytes of its reply.
class reply_encoder {
public:
  virtual ~reply_encoder() = default;
  virtual stream_format format() const { return {}; }
  /// Processes one event; `request` is an index into call::requests. For a stream, appends to `out`
  /// the bytes to send now.
  virtual void on_event(std::size_t request, actors::event&& ev, std::string& out) = 0;
  /// Called when every request has ended: appends the rest of a stream, or the whole body.
  virtual void on_end(std::string& out) = 0;
  /// Called when a stream that has begun fails: appends the final bytes of the stream, which report
  /// the error.
  virtual void on_error(const api_error& error, std::string& out) = 0;
};

struct call {
  std::vector<actors::request> requests;
  std::unique_ptr<reply_encoder> encoder;
  bool stream = false; ///< true: server-sent events; false: one JSON body
  /// Set if the response to the call's only request is to be stored (see net/stored). A codec only
  /// sets this member; the router starts the storing.
  std::optional<stored_head> stored;
  /// If not null, the events of the call come from this source, and the session starts no requests.
  std::shared_ptr<event_source> source;

  /// Number of event streams of the call: 1 with a source, else one per request.
  std::size_t size() const { return source != nullptr ? 1 : requests.size(); }
};

/// Parses a request body into a call; the endpoint table names one codec per path that generates.
using codec = result<call> (*)(const value& body, const codec_context& context);

/// The id and creation time of a reply, new for each reply; tests set fixed ones.
struct reply_identity {
  std::string id;
  std::string model;
  std::int64_t created_unix_s = 0;
};

reply_identity make_identity(std::string_view id_prefix, const codec_context& context);

} // namespace twill::net
