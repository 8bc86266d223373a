// codec: turns a request body into a `call`, without sockets and without Beast.
//
// A call holds the engine requests to submit and the encoder that turns their events into the
// reply. Sessions and batches move bytes and know no dialect. Calls are plain values; one strand or
// thread uses a call at a time.
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

/// Looks up what `previous_response_id` names among what this tenant may continue; null where it
/// is not remembered.
using find_response = std::function<std::shared_ptr<const remembered_response>(
    const std::string& id, const std::string& tenant)>;

/// What a codec may look at while it reads a body.
struct codec_context {
  const actors::model_info& model;
  const config::limit_options& limits;
  const actors::engine_port& engine; ///< detokenizes an echoed prompt
  const find_response& find_previous;
  const std::string& tenant;
  const std::string& server_name; ///< `server.name`, which ids carry
};

/// What a streamed reply is, as far as HTTP is concerned.
struct stream_format {
  std::string_view content_type = "text/event-stream; charset=utf-8";
  /// Written when there was nothing to say for long; empty: the format has nothing that clients
  /// skip. The default is a comment (the HTML standard, section 9.2).
  std::string_view filler = ": keep-alive\n\n";
};

/// Turns the events of a call's requests into the bytes of its reply.
class reply_encoder {
public:
  virtual ~reply_encoder() = default;
  virtual stream_format format() const { return {}; }
  /// `request` is an index into call::requests. Streams append what is to be sent now.
  virtual void on_event(std::size_t request, actors::event&& ev, std::string& out) = 0;
  /// Every request is over: appends the rest of a stream, or the whole body.
  virtual void on_end(std::string& out) = 0;
  /// A stream that has begun fails: appends its last words.
  virtual void on_error(const api_error& error, std::string& out) = 0;
};

struct call {
  std::vector<actors::request> requests;
  std::unique_ptr<reply_encoder> encoder;
  bool stream = false; ///< true: server-sent events; false: one JSON body
  /// The one request is to be stored: whoever runs the call sees to it.
  std::optional<stored_head> stored;
  /// What gives the events, instead of requests that the session starts.
  std::shared_ptr<event_source> source;

  /// How many keys its events come by.
  std::size_t size() const { return source != nullptr ? 1 : requests.size(); }
};

/// Reads a body; the endpoint table names one codec per path that generates.
using codec = result<call> (*)(const value& body, const codec_context& context);

/// Fresh ids and times of a reply; tests set them.
struct reply_identity {
  std::string id;
  std::string model;
  std::int64_t created_unix_s = 0;
};

reply_identity make_identity(std::string_view id_prefix, const codec_context& context);

} // namespace twill::net
