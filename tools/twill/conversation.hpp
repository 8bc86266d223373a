// conversation: turns of a chat over the Responses WebSocket (GET /v1/responses, upgraded).
//
// Each turn sends only what is new and names the last response; the daemon keeps the rest in the
// connection's memory. When that memory is gone (the connection was lost), the next turn connects
// anew and sends the whole history. One thread; throws client_error when a turn fails.
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

/// The conversation, with what was to be said, does not fit the context.
class context_is_full : public client_error {
  using client_error::client_error;
};

struct chat_flags {
  server_flags server;
  sampling_flags sampling;
  std::string system;       ///< empty: none
  bool drops_turns = false; ///< the oldest ones, where the context is full
};

struct turn {
  std::string text;
  bool cancelled = false;
  bool cut = false; ///< the token limit ended it
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

class conversation {
public:
  explicit conversation(chat_flags flags) : flags_(std::move(flags)) {}

  /// Sends `text` and hands out the reply as it comes. Interrupts cancel the reply.
  turn say(const std::string& text, const std::function<void(std::string_view)>& on_text);

  /// The next turn is the first one.
  void forget();
  const std::string& system() const { return flags_.system; }
  /// Empty: no instructions.
  void set_system(std::string text);
  /// `context_tokens`: what its context holds; 0: unknown.
  void set_model(std::string id, std::int64_t context_tokens);
  const std::string& model() const { return flags_.server.model; }
  void drop_turns(bool drops) { flags_.drops_turns = drops; }
  context_use context() const { return {used_tokens_, limit_tokens_, flags_.drops_turns}; }
  endpoint where() const { return flags_.server.where(); }
  /// The conversation as messages of OpenAI's chat: role and content.
  boost::json::array messages() const;

private:
  void connect();
  void request(const std::string& text);
  turn read_reply(const std::function<void(std::string_view)>& on_text);
  bool take_event(std::string_view frame, turn& reply,
                  const std::function<void(std::string_view)>& on_text);

  chat_flags flags_;
  std::unique_ptr<ws_client> socket_;
  std::string last_response_;  ///< in the connection's memory; empty: nothing is
  boost::json::array history_; ///< finished turns as input items
  std::int64_t used_tokens_ = 0, limit_tokens_ = 0;
};

} // namespace twill::tools
