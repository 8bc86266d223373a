// message_form: what a chat template expects of the messages it is given, and messages so changed.
//
// Templates differ in whether a call's arguments are an object or JSON text, whether content may be
// null beside calls, which roles and which ids of calls they take. The template is tried once on a
// short conversation to find out; what it takes stays as the client wrote it. A template that knows
// no tools gets them as text in the system message. Pure functions; any thread.
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
  bool knows_system = true;    ///< false: what the system says joins the first message
  bool knows_tool_role = true; ///< false: results of calls are said by the user
};

/// Renders messages with tools; empty when the template fails.
using try_template = std::function<std::string(const value& messages, const value& tools)>;

message_form find_message_form(std::string_view template_source, const try_template& render);

/// Messages with all their members, in the form that the template expects. `tool_text` tells of the
/// tools; a template that shows tools itself does not get it.
value fit_messages(const value& messages, const message_form& form,
                   const std::string& tool_text = {});

} // namespace twill::models
