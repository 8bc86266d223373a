// response_item: one item of a response's output: reasoning, a message or a function call. A plain
// value; on one session's strand.
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
  std::string text;    ///< a call's: its arguments
  std::string name;    ///< call
  std::string call_id; ///< call
  bool complete = false;
  std::vector<actors::token_output> logprobs; ///< message

  /// Item `which` of the output of the response `of`. A call without an id of its own gets one.
  response_item(std::string_view of, std::size_t which, response_item_kind of_kind,
                std::string call_name, std::string id_of_call = {});

  /// {"id","type","status",...}; before the item is over its content is left out.
  void add_to(json_writer& json, bool over) const;
  /// The one part of a message's or reasoning's content.
  void add_part_to(json_writer& json, bool over) const;
};

} // namespace twill::net
