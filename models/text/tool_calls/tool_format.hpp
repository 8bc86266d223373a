// tool_format: how a model writes tool calls and reasoning, as data. Plain values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::models::tool_calls {

enum class call_syntax {
  tagged_json, ///< BEGIN {"name": ..., "arguments": {...}} END, any number of times in a text
  listed_json, ///< BEGIN [{...}, ...], or BEGIN name CALL_ID id ARGS {...}, where the markers but
               ///< the first may be missing: Mistral
  bare_json,   ///< the answer is {"name": ..., "parameters": {...}}, several apart by `;` or in a
               ///< list
  chatglm3,    ///< name, line end, ```python tool_call(key=value, ...)```
};

struct tool_format {
  std::string name; ///< name of the format in the option model.tool_format
  call_syntax syntax = call_syntax::bare_json;
  std::string begin;     ///< marker in front of a call; bare_json: optional marker in front of the
                         ///< first call
  std::string end;       ///< tagged_json: marker after a call
  std::string arguments; ///< listed_json: marker between a bare name and its arguments
  std::string call_id;   ///< listed_json: marker between a bare name and the id of the call
  bool bare_names = false; ///< listed_json: the model writes bare names, and no list

  bool operator==(const tool_format&) const = default;
};

struct reasoning_tags {
  std::string begin = "<think>";
  std::string end = "</think>";
};

/// hermes, mistral, llama3_json, chatglm3, json.
const std::vector<tool_format>& known_formats();
std::optional<tool_format> format_named(std::string_view name);

} // namespace twill::models::tool_calls
