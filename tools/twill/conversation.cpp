#include "tools/twill/conversation.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>

#include "tools/twill/interrupt.hpp"
#include "tools/twill/refusal.hpp"

namespace twill::tools {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

/// The member `key` of an object, or a JSON null when there is none.
const json::value& at(const json::value& from, std::string_view key) {
  static const json::value null;
  const auto* object = from.if_object();
  const auto* member = object == nullptr ? nullptr : object->if_contains(key);
  return member == nullptr ? null : *member;
}

std::string_view text_of(const json::value& v) {
  const auto* text = v.if_string();
  return text == nullptr ? std::string_view{} : std::string_view(*text);
}

std::int64_t number_of(const json::value& v) {
  boost::system::error_code ignored;
  const auto number = v.to_number<std::int64_t>(ignored);
  return ignored ? 0 : number;
}

json::object message(const char* role, std::string_view text) {
  return {{"type", "message"}, {"role", role}, {"content", text}};
}

[[noreturn]] void fail_with(const endpoint& where, const json::value& error) {
  const auto code = text_of(at(error, "code"));
  // A key may be revoked while the connection is open.
  if (code == "invalid_api_key") throw client_error(why_no_access(where));
  std::string why(text_of(at(error, "message")));
  if (why.empty()) why = "the daemon reported an error without words";
  if (code == "context_length_exceeded" || code == "request_too_large") throw context_is_full(why);
  throw client_error(why);
}

} // namespace

void conversation::connect() {
  last_response_.clear();
  socket_.reset();
  socket_ = open_socket(flags_.server.where(), "/v1/responses");
}

void conversation::forget() {
  history_.clear();
  last_response_.clear();
  used_tokens_ = 0;
}

// Without the id of a last response, the next turn sends the whole history again. Otherwise the
// daemon would continue from the turns it has stored, which had another system prompt or model.
void conversation::set_system(std::string text) {
  flags_.system = std::move(text);
  last_response_.clear();
}

void conversation::set_model(std::string id, std::int64_t context_tokens) {
  flags_.server.model = std::move(id);
  limit_tokens_ = context_tokens;
  last_response_.clear();
}

json::array conversation::messages() const {
  json::array all;
  if (!flags_.system.empty())
    all.push_back(json::object{{"role", "system"}, {"content", flags_.system}});
  for (const auto& item : history_)
    all.push_back(json::object{{"role", item.at("role")}, {"content", item.at("content")}});
  return all;
}

void conversation::request(const std::string& text) {
  json::object create{{"type", "response.create"}};
  if (!flags_.server.model.empty()) create["model"] = flags_.server.model;
  if (!flags_.system.empty()) create["instructions"] = flags_.system;
  if (flags_.drops_turns) create["truncation"] = "auto";
  put_sampling(create, flags_.sampling, "max_output_tokens");
  json::array input;
  if (last_response_.empty())
    input = history_;
  else
    create["previous_response_id"] = last_response_;
  input.push_back(message("user", text));
  create["input"] = std::move(input);
  socket_->send(json::serialize(create));
}

turn conversation::say(const std::string& text,
                       const std::function<void(std::string_view)>& on_text) {
  if (socket_ == nullptr || socket_->lost()) connect();
  request(text);
  turn reply;
  try {
    reply = read_reply(on_text);
  } catch (...) {
    // The state of the connection is unknown after a failure, so it is closed, and the next turn
    // sends the whole history on a new one.
    socket_.reset();
    throw;
  }
  if (reply.cancelled) {
    // The daemon drops an unfinished turn, and so does this client.
    last_response_.clear();
    return reply;
  }
  history_.push_back(message("user", text));
  history_.push_back(message("assistant", reply.text));
  used_tokens_ = reply.input_tokens + reply.output_tokens;
  return reply;
}

turn conversation::read_reply(const std::function<void(std::string_view)>& on_text) {
  turn reply;
  auto give_up = std::chrono::steady_clock::time_point::max();
  for (;;) {
    // The wait is short because a signal does not interrupt it.
    const auto frame = socket_->receive(50ms);
    if (frame.has_value() && take_event(*frame, reply, on_text)) return reply;
    if ((interrupts() > 0 || noted_ending() != 0) && !reply.cancelled) {
      reply.cancelled = true;
      give_up = std::chrono::steady_clock::now() + 2s;
      socket_->send(R"({"type":"response.cancel"})");
    }
    if (interrupts() > 1 || noted_ending() != 0 || std::chrono::steady_clock::now() > give_up) {
      socket_.reset();
      return reply;
    }
  }
}

/// Processes one event of the reply. Returns true when the event ends the reply.
bool conversation::take_event(std::string_view frame, turn& reply,
                              const std::function<void(std::string_view)>& on_text) {
  boost::system::error_code bad;
  const auto event = json::parse(frame, bad);
  if (bad) throw client_error("the daemon sent a frame that is not JSON");
  const auto type = text_of(at(event, "type"));
  if (type == "response.output_text.delta") {
    const auto delta = text_of(at(event, "delta"));
    reply.text += delta;
    if (!reply.cancelled) on_text(delta);
    return false;
  }
  if (type == "error" || type == "response.failed") {
    if (reply.cancelled) return true;
    fail_with(flags_.server.where(), at(type == "error" ? event : at(event, "response"), "error"));
  }
  const bool over =
      type == "response.completed" || type == "response.incomplete" || type == "response.cancelled";
  if (!over) return false;
  const auto& response = at(event, "response");
  last_response_ = text_of(at(response, "id"));
  reply.cut = type == "response.incomplete" && !reply.cancelled;
  reply.input_tokens = number_of(at(at(response, "usage"), "input_tokens"));
  reply.output_tokens = number_of(at(at(response, "usage"), "output_tokens"));
  return true;
}

} // namespace twill::tools
