// call_event: an event that the parser of answers (parser.hpp) reports: a piece of text, of
// reasoning or of a tool call. Events are in the order of the answer. A plain value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::models::tool_calls {

enum class call_event_kind {
  text,           ///< `bytes` are part of the answer's text
  reasoning,      ///< `bytes` are part of the reasoning
  call_begin,     ///< `bytes` is the function's name
  call_arguments, ///< `bytes` continue the arguments, which are a JSON text
  call_end,       ///< the call has ended; `complete` says whether its arguments are complete
};

struct call_event {
  call_event_kind kind = call_event_kind::text;
  std::string bytes;
  int call = -1;        ///< which call, from 0; -1 for text and reasoning
  bool complete = true; ///< call_end
  std::string id{};     ///< call_begin: the call's id if the model wrote one

  bool operator==(const call_event&) const = default;
};

/// Appends `bytes` to the last event if that has the same kind and call; otherwise adds a new
/// event.
void append(std::vector<call_event>& events, call_event_kind what, std::string_view bytes,
            int call = -1);

} // namespace twill::models::tool_calls
