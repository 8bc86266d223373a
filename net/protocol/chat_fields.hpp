// Reading chat messages and tools into what templates take. Pure.
//
// Whatever way a client spells a message, the template gets one: content as one string (parts are
// joined by a newline, as vLLM does) or null beside tool calls, calls with their arguments as the
// client spelled them, results with the name of the function that was called, no members that are
// null. What a single model's template needs beyond that is the engine's matter.
#pragma once

#include <span>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/tool_fields.hpp"

namespace twill::net {

/// `messages`, `add_generation_prompt`, `continue_final_message` and all of read_template_fields().
void read_messages(fields& from, actors::chat_prompt& to);

/// All of read_messages() and of read_tools().
tool_fields read_chat_prompt(fields& from, actors::chat_prompt& to);

/// `chat_template`, the name of one of the model's templates, and `chat_template_kwargs`.
void read_template_fields(fields& from, actors::chat_prompt& to);

/// `continue_final_message` where it is no field of the API.
inline constexpr field_row no_continuation_row{"continue_final_message", schema::any,
                                               "false or absent: it is a field of chats",
                                               field_use::refused};
inline void reject_continuation(fields& from) {
  reject_listed(from, std::span(&no_continuation_row, 1));
}

void add_message_rows(field_rows& to); ///< of read_messages()
void add_chat_prompt_rows(field_rows& to);
void add_template_rows(field_rows& to);

/// One entry of `messages`; `name` is its path in error messages.
value read_chat_message(fields& from, const std::string& name, const value& message);

/// A content member to one string; `name` is its path in error messages.
std::string read_content(fields& from, const std::string& name, const value& content);

/// {"role":..., "content":...}
value make_message(std::string role, std::string content);

/// {"id","type":"function","function":{"name","arguments"}}; no arguments are an empty object.
value make_tool_call(std::string id, std::string name, const value& arguments);

/// Gives results the name of the function that the call of the same id called.
void name_tool_results(value_list& messages);

} // namespace twill::net
