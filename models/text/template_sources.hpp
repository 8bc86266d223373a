// template_sources: reads the chat templates in a model's files as Jinja sources, by name.
//
// A model may have several: the default one, `tool_use` for requests with tools, and others that a
// request names. Which files are read, and which template is preferred, is as in transformers. Any
// thread may call. A template that cannot be read is omitted and named in `faults`, so that the
// others can still be used.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "config/base/value.hpp"

namespace twill::models {

namespace gguf {
struct metadata;
}

/// The name of the template that requests with tools get where the model has it.
inline constexpr const char* tool_template_name = "tool_use";
inline constexpr const char* default_template_name = "default";

struct template_sources {
  std::string main;                                        ///< the default; empty: none
  std::vector<std::pair<std::string, std::string>> others; ///< name and source, each name once
  std::vector<std::string> faults; ///< one line for each omitted template, with the reason

  bool empty() const { return main.empty() && others.empty(); }
};

/// Reads the files chat_template.jinja and additional_chat_templates/NAME.jinja of a folder. If
/// they give no default template, `chat_template` of tokenizer_config.json (a text, or a list of
/// {name, template}) is read as well. If that gives no template at all, `chat_template` of
/// chat_template.json is read instead.
template_sources folder_template_sources(const std::string& folder, const value* tokenizer_config);

/// `tokenizer.chat_template` and `tokenizer.chat_template.NAME`.
template_sources gguf_template_sources(const gguf::metadata& meta);

} // namespace twill::models
