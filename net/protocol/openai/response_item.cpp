#include "net/protocol/openai/response_item.hpp"

#include <utility>

#include "net/protocol/output_json.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

std::string_view prefix_of(response_item_kind kind) {
  switch (kind) {
  case response_item_kind::message:
    return "msg_";
  case response_item_kind::reasoning:
    return "rs_";
  case response_item_kind::call:
    break;
  }
  return "fc_";
}

} // namespace

response_item::response_item(std::string_view of, std::size_t which, response_item_kind of_kind,
                             std::string call_name, std::string id_of_call)
    : kind(of_kind), id(part_id(prefix_of(of_kind), of, which)), name(std::move(call_name)),
      call_id(std::move(id_of_call)) {
  if (kind == response_item_kind::call && call_id.empty()) call_id = part_id("call_", of, which);
}

void response_item::add_part_to(json_writer& json, bool over) const {
  const std::string_view shown = over ? std::string_view(text) : std::string_view();
  if (kind == response_item_kind::reasoning) {
    json.begin_object().field("type", "reasoning_text").field("text", shown).end_object();
    return;
  }
  json.begin_object().field("type", "output_text").key("annotations").raw("[]").key("logprobs");
  if (over)
    add_chat_logprobs(json, logprobs, false);
  else
    json.raw("[]");
  json.field("text", shown).end_object();
}

void response_item::add_to(json_writer& json, bool over) const {
  const std::string_view status = !over ? "in_progress" : complete ? "completed" : "incomplete";
  json.begin_object().field("id", id);
  if (kind == response_item_kind::call) {
    json.field("type", "function_call")
        .field("status", status)
        .field("call_id", call_id)
        .field("name", name)
        .field("arguments", over ? std::string_view(text) : std::string_view())
        .end_object();
    return;
  }
  const bool is_message = kind == response_item_kind::message;
  json.field("type", is_message ? "message" : "reasoning").field("status", status);
  if (is_message)
    json.field("role", "assistant");
  else
    json.key("summary").raw("[]");
  json.key("content").begin_array();
  if (over) add_part_to(json, true);
  json.end_array().end_object();
}

} // namespace twill::net
