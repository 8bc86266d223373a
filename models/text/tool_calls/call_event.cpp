#include "models/text/tool_calls/call_event.hpp"

namespace twill::models::tool_calls {

void append(std::vector<call_event>& events, call_event_kind what, std::string_view bytes,
            int call) {
  if (bytes.empty()) return;
  if (!events.empty() && events.back().kind == what && events.back().call == call)
    events.back().bytes += bytes;
  else
    events.push_back({what, std::string(bytes), call, true});
}

} // namespace twill::models::tool_calls
