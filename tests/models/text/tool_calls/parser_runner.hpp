// Runs a parser over an answer cut into pieces, and joins events that the cuts split.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/tool_calls/parser.hpp"

namespace twill::test {

using namespace models::tool_calls;

inline void join(std::vector<call_event>& all, const std::vector<call_event>& more) {
  for (const auto& e : more) {
    if (e.kind == call_event_kind::call_begin || e.kind == call_event_kind::call_end)
      all.push_back(e);
    else
      append(all, e.kind, e.bytes, e.call);
  }
}

inline std::vector<call_event> parse_whole(const parser_options& options, std::string_view answer) {
  parser p(options);
  std::vector<call_event> out;
  join(out, p.push(answer));
  join(out, p.finish());
  return out;
}

/// Cuts `answer` into pieces of 1 to `longest` bytes. `seen` gets every event unjoined.
inline std::vector<call_event> parse_in_pieces(const parser_options& options,
                                               std::string_view answer, std::mt19937& random,
                                               std::size_t longest,
                                               std::vector<call_event>* seen = nullptr) {
  parser p(options);
  std::vector<call_event> out;
  const auto take = [&](std::vector<call_event> events) {
    if (seen != nullptr) seen->insert(seen->end(), events.begin(), events.end());
    join(out, events);
  };
  while (!answer.empty()) {
    const auto n = std::min<std::size_t>(answer.size(), 1 + random() % longest);
    take(p.push(answer.substr(0, n)));
    answer.remove_prefix(n);
  }
  take(p.finish());
  return out;
}

struct seen_call {
  std::string name, arguments;
  bool complete = true;
  std::string id{};
  bool operator==(const seen_call&) const = default;
};

struct seen_answer {
  std::string text, reasoning;
  std::vector<seen_call> calls;
};

inline seen_answer summary(const std::vector<call_event>& events) {
  seen_answer out;
  for (const auto& e : events) {
    switch (e.kind) {
    case call_event_kind::text:
      out.text += e.bytes;
      break;
    case call_event_kind::reasoning:
      out.reasoning += e.bytes;
      break;
    case call_event_kind::call_begin:
      out.calls.push_back({e.bytes, "", true, e.id});
      break;
    case call_event_kind::call_arguments:
      out.calls.back().arguments += e.bytes;
      break;
    case call_event_kind::call_end:
      out.calls.back().complete = e.complete;
      break;
    }
  }
  return out;
}

} // namespace twill::test
