#include "net/protocol/openai/stored_responses.hpp"

#include <utility>

#include "net/error_map.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/json/members.hpp"
#include "net/protocol/stored_context.hpp"
#include "net/protocol/stored_request.hpp"
#include "net/random_id.hpp"
#include "net/stored/stored_record.hpp"

namespace twill::net {
namespace {

value previous_of(const response_turn& turn) {
  if (turn.previous == nullptr) return {};
  return value_object{{"messages", turn.previous->messages},
                      {"instructions", turn.previous->instructions},
                      {"tools", turn.previous->tools}};
}

remembered_ptr previous_in(const value& asked) {
  const auto* from = member(asked, "previous");
  if (from == nullptr) return nullptr;
  auto previous = std::make_shared<remembered_response>();
  if (const auto* messages = from->find("messages"); messages && messages->as_list())
    previous->messages = *messages->as_list();
  previous->instructions = text_of(from->find("instructions"));
  if (const auto* tools = from->find("tools")) previous->tools = *tools;
  return previous;
}

result<response_turn> parse_stored(const stored_head& head, const codec_context& context) {
  const auto body = body_of(head);
  if (!body.ok()) return fail(body.code());
  return parse_response_turn(*body.value(), context,
                             [&](const std::string&) { return previous_in(head.asked); });
}

/// Converts an item of the input to the form in which it is listed: a message's text becomes a list
/// of parts.
value listed_item(const value& item, const std::string& id) {
  value_object listed{{"id", id}};
  const auto* members = item.as_object();
  const bool is_message =
      member(item, "type") == nullptr || text_of(item.find("type")) == "message";
  if (member(item, "type") == nullptr) listed.emplace_back("type", "message");
  const bool by_model = text_of(item.find("role")) == "assistant";
  for (const auto& [name, v] : *members) {
    if (name == "id") continue;
    if (is_message && name == "content" && v.as_string() != nullptr)
      listed.emplace_back(name,
                          value_list{value_object{{"type", by_model ? "output_text" : "input_text"},
                                                  {"text", *v.as_string()}}});
    else
      listed.emplace_back(name, v);
  }
  if (member(item, "status") == nullptr) listed.emplace_back("status", "completed");
  return listed;
}

std::string_view item_prefix(const value& item) {
  const auto type = text_of(item.find("type"));
  if (type == "function_call") return "fc_";
  if (type == "function_call_output") return "fco_";
  return type == "reasoning" ? "rs_" : "msg_";
}

} // namespace

stored_head stored_head_of(const response_turn& turn, const value& body,
                           const std::string& tenant) {
  auto head = head_of(turn.echo.identity, turn.request.sampling, body, tenant,
                      {{"previous", previous_of(turn)}});
  head.client_id = turn.request.client_id;
  head.background = turn.echo.background;
  return head;
}

result<response_turn> stored_turn(const stored_head& head, const actors::engine_port& engine) {
  const stored_context reading(head, engine);
  auto turn = parse_stored(head, reading.get());
  if (!turn.ok()) return turn;
  turn.value().echo.identity = identity_of(head);
  auto& echo = turn.value().echo;
  config::sampling_params sampling;
  sampling.temperature = sampling.top_p = 1;
  sampling.max_tokens = -1;
  restore_sampling(head.asked, sampling);
  echo.temperature = sampling.temperature;
  echo.top_p = sampling.top_p;
  echo.max_output_tokens = sampling.max_tokens;
  return turn;
}

result<response_turn> ask_stored_again(const stored_head& head, const codec_context& context) {
  auto turn = parse_stored(head, context);
  if (!turn.ok()) return turn;
  turn.value().echo.identity = identity_of(head);
  auto& asked = turn.value().request;
  std::get<actors::chat_prompt>(asked.prompt).now_unix_s = head.created_unix_s;
  restore_sampling(head.asked, asked.sampling);
  return turn;
}

response_events replay_response(const response_turn& turn,
                                const std::vector<std::string>& records) {
  response_events events(turn.echo, {});
  if (turn.echo.background) events.queue();
  for (const auto& record : records) {
    auto ev = read_record(record);
    if (!ev) continue;
    if (!ev->error) {
      events.on_event(std::move(*ev));
    } else if (ev->error->code == actors::errc::cancelled) {
      events.cancel();
    } else {
      if (!events.begun()) events.begin();
      events.fail(from_engine(std::move(*ev->error)));
    }
  }
  return events;
}

remembered_ptr remember_stored(const response_turn& turn, const std::vector<std::string>& records) {
  if (records.empty()) return nullptr;
  const auto last = read_record(records.back());
  if (!last || !last->last || last->error) return nullptr;
  const auto events = replay_response(turn, records);
  return std::make_shared<const remembered_response>(
      remember(turn, events.text(), events.tool_calls()));
}

std::vector<input_item> input_items_of(const stored_head& head) {
  std::vector<input_item> items;
  const auto* body = head.asked.find("body");
  const auto* input = body == nullptr ? nullptr : member(*body, "input");
  if (input == nullptr) return items;
  const auto add = [&](const value& item) {
    const auto own = text_of(item.find("id"));
    // Output items have ids made from small numbers, so input items start at 2^32.
    constexpr std::size_t first = std::size_t{1} << 32;
    const auto id = own.empty() ? part_id(item_prefix(item), head.id, first + items.size()) : own;
    items.push_back({id, json_text(listed_item(item, id))});
  };
  if (input->as_string() != nullptr) add(value_object{{"role", "user"}, {"content", *input}});
  if (const auto* list = input->as_list())
    for (const auto& item : *list)
      if (item.as_object() != nullptr) add(item);
  return items;
}

} // namespace twill::net
