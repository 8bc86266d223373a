// call_event: what a parser of answers reports, in the order of the answer. A plain value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::models::tool_calls {

enum class call_event_kind {
  text,           ///< `bytes` are part of the answer's text
  reasoning,      ///< `bytes` are part of the reasoning
  call_begin,     ///< `bytes` is the function's name
  call_arguments, ///< `bytes` go on the arguments, a JSON text
  call_end,       ///< the call is over; `complete` says whether its arguments are
};

struct call_event {
  call_event_kind kind = call_event_kind::text;
  std::string bytes;
  int call = -1;        ///< which call, from 0; -1 for text and reasoning
  bool complete = true; ///< call_end
  std::string id{};     ///< call_begin: what the model wrote as the call's id; empty: none

  bool operator==(const call_event&) const = default;
};

/// Appends `bytes` to the last event when it is of the same kind and call, else as a new event.
void append(std::vector<call_event>& events, call_event_kind what, std::string_view bytes,
            int call = -1);

} // namespace twill::models::tool_calls
