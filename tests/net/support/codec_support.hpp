// Helpers for tests of codecs, which turn the bodies of an API's requests into engine requests: a
// model, limits and an engine to pass to a codec, and functions that return its answers.
#pragma once

#include "net/protocol/codec.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/openai/response_store.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/stored/stored_record.hpp"
#include "tests/net/support/scripted_engine.hpp"

namespace twill::testing {

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline value json(std::string_view text) {
  auto parsed = net::parse_json(text);
  if (!parsed.ok()) throw std::runtime_error(parsed.code().message + " in " + std::string(text));
  return std::move(parsed).value();
}

/// A member by path: at(v, "choices", 0, "text").
inline const value& at(const value& v) {
  return v;
}
template <class... Rest>
const value& at(const value& v, const char* key, Rest... rest);
template <class... Rest>
const value& at(const value& v, int index, Rest... rest) {
  if (v.as_list() == nullptr || static_cast<std::size_t>(index) >= v.as_list()->size())
    throw std::runtime_error("no entry " + std::to_string(index));
  return at((*v.as_list())[static_cast<std::size_t>(index)], rest...);
}
template <class... Rest>
const value& at(const value& v, const char* key, Rest... rest) {
  const auto* member = v.find(key);
  if (member == nullptr) throw std::runtime_error(std::string("no member ") + key);
  return at(*member, rest...);
}

struct codec_fixture {
  scripted_engine engine;
  actors::model_info model = engine.models().front();
  config::limit_options limits;
  net::response_store responses;
  std::string tenant;
  std::string server_name;
  std::map<std::string, net::remembered_ptr> stored; ///< by tenant and id
  /// Stores a response that had these events, so that find_previous() finds it.
  void store(const net::stored_head& head, const std::vector<actors::event>& events) {
    std::vector<std::string> records;
    for (const auto& ev : events)
      records.push_back(net::write_record(ev));
    auto turn = net::stored_turn(head, engine);
    if (turn.ok())
      stored[head.tenant + "/" + head.id] = net::remember_stored(turn.value(), records);
  }
  net::find_response find_previous = [this](const std::string& id, const std::string& of) {
    const auto found = stored.find(of + "/" + id);
    return found != stored.end() ? found->second : responses.find(id, of, 0);
  };
  net::codec_context context{model, limits, engine, find_previous, tenant, server_name};
};

inline actors::event started(std::int32_t prompt_tokens = 3) {
  actors::event ev;
  ev.started = true;
  ev.use.prompt_tokens = prompt_tokens;
  return ev;
}

inline actors::event piece(std::string text, std::int32_t id = 100, std::int32_t choice = 0) {
  actors::event ev;
  ev.choice = choice;
  ev.tokens.push_back({{id, text, -0.25f}, {{id, text, -0.25f}, {id + 1, "~", -2.0f}}});
  ev.text = std::move(text);
  return ev;
}

inline actors::event finished(actors::finish_reason why = actors::finish_reason::stop,
                              bool last = true, std::int32_t choice = 0) {
  actors::event ev;
  ev.choice = choice;
  ev.finish = why;
  ev.last = last;
  return ev;
}

inline actors::event failed(actors::errc code, std::string message) {
  actors::event ev;
  ev.error = actors::request_error{code, std::move(message), ""};
  ev.last = true;
  return ev;
}

} // namespace twill::testing
