// conversation: turns of a chat over the Responses WebSocket (GET /v1/responses, upgraded).
//
// A turn sends only the new message and the id of the last response; the daemon keeps the earlier
// turns in the memory of the connection. After the connection was lost, that memory is gone, so the
// next turn connects again and sends the whole history. Only one thread may use a conversation.
// say() throws client_error when a turn fails.
#pragma once

#include <boost/json/array.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tools/common/ws_client.hpp"
#include "tools/twill/context_use.hpp"
#include "tools/twill/request_flags.hpp"

namespace twill::tools {

/// The conversation, including the new message, does not fit into the model's context.
class context_is_full : public client_error {
  using client_error::client_error;
};

struct chat_flags {
  server_flags server;
  sampling_flags sampling;
  std::string system;       ///< the system prompt; empty: none
  bool drops_turns = false; ///< leave out the oldest turns when the context is full
};

struct turn {
  std::string text;
  bool cancelled = false;
  bool cut = false; ///< the reply ended at the token limit
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

class conversation {
public:
  explicit conversation(chat_flags flags) : flags_(std::move(flags)) {}

  /// Sends `text` and passes the reply to `on_text` piece by piece as it arrives. Ctrl-C cancels
  /// the reply.
  turn say(const std::string& text, const std::function<void(std::string_view)>& on_text);

  /// Starts a new conversation: the next turn is the first.
  void forget();
  const std::string& system() const { return flags_.system; }
  /// Sets the system prompt; an empty text removes it.
  void set_system(std::string text);
  /// Sets the model. `context_tokens` is the length of its context; 0: unknown.
  void set_model(std::string id, std::int64_t context_tokens);
  const std::string& model() const { return flags_.server.model; }
  void drop_turns(bool drops) { flags_.drops_turns = drops; }
  context_use context() const { return {used_tokens_, limit_tokens_, flags_.drops_turns}; }
  endpoint where() const { return flags_.server.where(); }
  /// The conversation as a list of messages with role and content, as in OpenAI's chat API.
  boost::json::array messages() const;

private:
  void connect();
  void request(const std::string& text);
  turn read_reply(const std::function<void(std::string_view)>& on_text);
  bool take_event(std::string_view frame, turn& reply,
                  const std::function<void(std::string_view)>& on_text);

  chat_flags flags_;
  std::unique_ptr<ws_client> socket_;
  std::string last_response_;  ///< id of the last response that the daemon keeps for the
                               ///< connection; empty: none
  boost::json::array history_; ///< the finished turns, as input items of the Responses API
  std::int64_t used_tokens_ = 0, limit_tokens_ = 0;
};

} // namespace twill::tools
