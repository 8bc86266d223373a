// response_item: one item of a response's output: reasoning, a message or a function call. Not
// thread-safe; used on one session's strand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

enum class response_item_kind { message, reasoning, call };

struct response_item {
  response_item_kind kind = response_item_kind::message;
  std::string id;
  std::string text;    ///< the arguments, if this is a call
  std::string name;    ///< the function's name, if this is a call
  std::string call_id; ///< the call's id, if this is a call
  bool complete = false;
  std::vector<actors::token_output> logprobs; ///< of a message's tokens, if wanted

  /// Makes item number `which` of the output of the response with the id `of`. A function call
  /// without an id gets one.
  response_item(std::string_view of, std::size_t which, response_item_kind of_kind,
                std::string call_name, std::string id_of_call = {});

  /// Writes {"id","type","status",...}. Content is written only if `over` is true.
  void add_to(json_writer& json, bool over) const;
  /// Writes the only content part of a message or of reasoning.
  void add_part_to(json_writer& json, bool over) const;
};

} // namespace twill::net
