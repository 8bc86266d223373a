// Reads chat messages and tools and converts them to the form that chat templates take. The
// functions are pure.
//
// Clients may write a message in several ways; the template always gets the same form. Content is
// one string (several text parts are joined by a newline, as in vLLM), or null in a message with
// tool calls. Tool calls keep their arguments as the client wrote them. Tool results carry the name
// of the function that was called. Members whose value is null are left out. Conversions that only
// one model's template needs are done in the engine, not here.
#pragma once

#include <span>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/tool_fields.hpp"

namespace twill::net {

/// Reads `messages`, `add_generation_prompt`, `continue_final_message` and every field that
/// read_template_fields() reads.
void read_messages(fields& from, actors::chat_prompt& to);

/// Reads every field that read_messages() and read_tools() read.
tool_fields read_chat_prompt(fields& from, actors::chat_prompt& to);

/// Reads `chat_template`, the name of one of the model's templates, and `chat_template_kwargs`.
void read_template_fields(fields& from, actors::chat_prompt& to);

/// The field_table row for APIs that do not have the field `continue_final_message`: any value that
/// asks for continuation is refused.
inline constexpr field_row no_continuation_row{"continue_final_message", schema::any,
                                               "false or absent: it is a field of chats",
                                               field_use::refused};
inline void reject_continuation(fields& from) {
  reject_listed(from, std::span(&no_continuation_row, 1));
}

void add_message_rows(field_rows& to); ///< rows of the fields that read_messages() reads
void add_chat_prompt_rows(field_rows& to);
void add_template_rows(field_rows& to);

/// Converts one entry of `messages`. `name` is the path of the entry in error messages.
value read_chat_message(fields& from, const std::string& name, const value& message);

/// Converts a `content` member to one string. `name` is the path of the member in error messages.
std::string read_content(fields& from, const std::string& name, const value& content);

/// {"role":..., "content":...}
value make_message(std::string role, std::string content);

/// {"id","type","function":{"name","arguments"}}; null or empty `arguments` become an empty object.
value make_tool_call(std::string id, std::string name, const value& arguments);

/// Adds to each tool result the name of the function, taken from the tool call with the matching
/// id.
void name_tool_results(value_list& messages);

} // namespace twill::net
