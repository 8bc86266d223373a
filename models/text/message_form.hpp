// message_form: finds out in which form a chat template expects messages, and converts messages to
// that form.
//
// Templates differ in whether a call's arguments are an object or JSON text, whether content may be
// null beside calls, which roles and which ids of calls they take. The template is tried once on a
// short conversation to find out; parts that the template accepts stay as the client wrote them.
// For a template that does not support tools, the tools are described as text in the system
// message. Pure functions, which any thread may call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "config/base/value.hpp"

namespace twill::models {

struct message_form {
  bool object_arguments = true; ///< arguments may be an object
  bool text_arguments = false;  ///< arguments may be JSON text, which is printed as it is spelled
  bool null_content = false;    ///< content may be null beside calls; false: it is empty text
  bool shows_calls = true; ///< false: the template ignores calls, so their JSON joins the content
  bool knows_developer = false; ///< false: the role is named system
  bool short_call_ids = false;  ///< ids have nine letters and digits (Mistral); others are replaced
  bool shows_tools = true;      ///< false: the template does not mention tools
  // Tried only where the template shows no tools:
  bool knows_system = true;    ///< false: the system message's text is joined to the first message
  bool knows_tool_role = true; ///< false: results of calls become messages of the user
};

/// Renders messages with tools; empty when the template fails.
using try_template = std::function<std::string(const value& messages, const value& tools)>;

message_form find_message_form(std::string_view template_source, const try_template& render);

/// Returns `messages` in the form that the template expects. Members of a message that need no
/// conversion are kept. `tool_text` describes the tools; it is not used if the template shows tools
/// itself.
value fit_messages(const value& messages, const message_form& form,
                   const std::string& tool_text = {});

} // namespace twill::models
