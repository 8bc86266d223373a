// Chats for small models: templates for every format of tool calls, prompts for them, and the text
// that each prompt must become by the definition of the template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"
#include "models/model.hpp"
#include "models/text/tool_calls/tool_format.hpp"

namespace twill::test {

/// How answers to a template's prompts are read.
struct answer_style {
  std::optional<models::tool_calls::tool_format> calls;
  bool thinks = false;
};

/// The answer styles of one model's templates.
struct chat_styles {
  answer_style main, with_tools, dated;
  std::string turn; ///< the text before each message
};

/// Gives the model a default chat template, one for chats with tools, and one named `dated` that
/// shows the time. `number` chooses the format of tool calls.
chat_styles give_templates(models::model& to, std::size_t number);

/// How answers are parsed (answer_style) for the template that writes the request's prompt, or for
/// the default template if the request is no chat.
const answer_style& style_of(const chat_styles& styles, const actors::request& asked);

struct written_chat {
  std::string text;
  models::byte_ranges literal; ///< parts that come from the request
};
written_chat write_chat(const chat_styles& styles, const actors::request& asked);

/// The request's chat. While its prompt has more than `most` tokens, the oldest turn is left out.
/// System messages and the last turn always stay.
actors::chat_prompt newest_turns_of(const chat_styles& styles, const models::tokenizer& text,
                                    const actors::request& asked, std::size_t most);

/// A tool's name, and its schema of arguments as JSON, or nothing.
struct small_tool {
  std::string name, parameters;
};
/// The tools that the prompt lists for the model, taken from the client's request.
std::vector<small_tool> tools_of(const actors::request& asked);

/// Makes the request one with a random chat of a few turns, with tools or without.
void take_chat(std::mt19937& random, const chat_styles& styles, const models::tokenizer& text,
               std::size_t longest, std::int32_t context, actors::request& asked);

} // namespace twill::test
