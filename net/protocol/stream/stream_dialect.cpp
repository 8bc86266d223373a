#include "net/protocol/stream/stream_dialect.hpp"

#include <limits>

#include "net/error_map.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/stored_request.hpp"
#include "net/server_name.hpp"
#include "net/stored/stored_api.hpp"
#include "net/stored/stored_bytes.hpp"

namespace twill::net {
namespace {

constexpr std::size_t merged_bytes = 32 * 1024; ///< no events are added to a frame above this size

/// Approximate bytes that an event takes in a frame.
std::size_t cost(const actors::event& ev) {
  std::size_t bytes = 32 + ev.text.size();
  for (const auto& part : ev.parts)
    bytes += 16 + part.text.size() + part.call_id.size();
  for (const auto& token : ev.prompt_scores)
    bytes += 8 + 48 * token.top.size();
  for (const auto& token : ev.tokens)
    bytes += 8 + 48 * token.top.size();
  return bytes;
}

} // namespace

void stream_dialect::on_message(std::string_view text) {
  auto parsed = parse_json(text);
  if (!parsed.ok()) return refuse({}, parsed.code(), false);
  const auto& message = parsed.value();
  const auto* op = message.find("op");
  const auto* name = op == nullptr ? nullptr : op->as_string();
  if (name != nullptr && *name == "submit") return submit(message);
  if (name != nullptr && *name == "resume") return resume(message);
  if (name != nullptr && *name == "cancel") return cancel(message);
  if (name != nullptr && *name == "credit") return grant(message);
  if (name != nullptr && *name == "ping") {
    std::string pong;
    json_writer json(pong);
    json.begin_object().field("op", "pong");
    if (const auto* nonce = message.find("nonce")) json.field("nonce", *nonce);
    json.end_object();
    return control(std::move(pong));
  }
  refuse({},
         api_error::of({"op", "be \"submit\", \"resume\", \"cancel\", \"credit\" or \"ping\"",
                        op == nullptr ? std::string("nothing") : describe(*op)}),
         false);
}

result<asked_stream> stream_dialect::read_submit(const value& message) {
  const auto current = scope_.current.get();
  // A reload of the configuration may have removed the key since the handshake.
  if (!current->keys.admit(scope_.holder)) return fail(unknown_key());
  auto model = find_model(scope_.engine, message, current->tenant(scope_.holder.tenant));
  if (!model.ok()) return fail(model.code());
  return read_stream_request(message,
                             {model.value(), current->limits, scope_.engine, scope_.find_previous,
                              scope_.holder.tenant, scope_.options.server.name});
}

/// Reads the id of a new stream and its initial credit. Returns null if the stream is refused.
stream_dialect::stream_ptr stream_dialect::read_new(const value& message) {
  fields from(message);
  auto s = std::make_shared<stream>();
  s->id = read_stream_id(from);
  if (streams_.contains(s->id)) { // two requests with one id could not be distinguished
    refuse(s->id, api_error::of({"id", "not be in use", s->id}), false);
    return nullptr;
  }
  if (from.ok() && scope_.host.output_full()) {
    refuse(s->id, output_is_full(), true);
    return nullptr;
  }
  if (from.find("credit") != nullptr) {
    std::int32_t credit = 0;
    from.read("credit", credit, 0);
    s->limited = true;
    s->credit = credit;
  }
  if (!from.ok()) {
    refuse(s->id, from.error(), true);
    return nullptr;
  }
  return s;
}

bool stream_dialect::has_place(const std::string& id) {
  const auto most = static_cast<std::size_t>(scope_.options.server.max_streams_per_socket);
  if (streams_.size() < most) return true;
  refuse(id,
         {errc::stream_limit,
          "this socket runs " + std::to_string(most) +
              " requests, which is the most (`server.max_streams_per_socket`); submit more "
              "when some have ended",
          ""},
         true);
  return false;
}

void stream_dialect::submit(const value& message) {
  const auto s = read_new(message);
  if (s == nullptr) return;
  auto asked = read_submit(message);
  if (!asked.ok()) return refuse(s->id, asked.code(), true);
  if (!has_place(s->id)) return;
  auto& [request, identity, form] = asked.value();
  request.tenant = scope_.holder.tenant;
  request.client_id = scope_.client_id + "/" + s->id;
  s->form = std::move(form);
  if (!s->form.store) return begin(s, scope_.host.start(std::move(request)));
  s->stored = identity.id;
  auto head = head_of(identity, request.sampling, message, scope_.holder.tenant);
  head.client_id = request.client_id;
  const auto key = scope_.host.start_stored(std::move(head), std::move(request));
  if (!key.ok()) return refuse(s->id, key.code(), true);
  begin(s, key.value());
}

void stream_dialect::begin(const stream_ptr& s, engine_requests::key key) {
  s->key = key;
  if (s->credit == 0) pause_engine(*s);
  streams_.emplace(s->id, s);
  by_key_.emplace(key, s);
}

/// Continues to read a stored stream, with the event after the one whose number is `after`.
void stream_dialect::resume(const value& message) {
  const auto s = read_new(message);
  if (s == nullptr) return;
  fields from(message);
  from.require("stored");
  from.read("stored", s->stored);
  if (from.find("after") != nullptr) {
    std::int32_t after = 0;
    from.read("after", after, 0);
    s->after = after;
  }
  if (!from.ok()) return refuse(s->id, from.error(), true);
  const auto current = scope_.current.get();
  if (!current->keys.admit(scope_.holder)) return refuse(s->id, unknown_key(), true);
  if (!has_place(s->id)) return;
  if (api_of(s->stored) != stored_api::stream || !is_stored_id(s->stored))
    return refuse(s->id, no_stored(s->stored), true);
  s->n_written = s->after + 1;
  streams_.emplace(s->id, s);
  scope_.host.find_stored(s->stored, scope_.holder.tenant, [this, s](auto found) {
    streams_.erase(s->id);
    follow(s, std::move(found));
    if (s->cancelled && s->key != 0) end_by_client(*s);
  });
}

api_error stream_dialect::no_stored(const std::string& id) const {
  const id_kind streams{id_prefix_of(stored_api::stream), "stored stream"};
  return {errc::no_such_response,
          "`stored` must name a stream that is stored, got " +
              describe_unknown_value(streams, id, scope_.options.server.name),
          "stored"};
}

void stream_dialect::follow(const stream_ptr& s, result<std::optional<followed_response>> found) {
  if (!found.ok()) return refuse(s->id, found.code(), true);
  if (!found.value()) return refuse(s->id, no_stored(s->stored), true);
  auto form = stored_stream_form(*found.value()->head, scope_.engine);
  if (!form.ok()) return refuse(s->id, form.code(), true);
  s->form = std::move(form).value();
  begin(s, scope_.host.follow(std::move(found.value()->source)));
}

stream_dialect::stream_ptr stream_dialect::find(const value& message, std::string& id) {
  fields from(message);
  id = read_stream_id(from);
  if (!from.ok()) {
    refuse(id, from.error(), false);
    return nullptr;
  }
  const auto found = streams_.find(id);
  if (found != streams_.end()) return found->second;
  refuse(id, {errc::unknown_stream, "`id` must name a running request, got " + id, "id"}, false);
  return nullptr;
}

void stream_dialect::cancel(const value& message) {
  std::string id;
  const auto s = find(message, id);
  if (!s) return;
  s->cancelled = true;
  if (s->key != 0) end_by_client(*s); // else it is ended when the stored stream is found
}

void stream_dialect::end_by_client(const stream& s) {
  // end() is true if the end would arrive as an event; this stream does not wait for that event.
  if (scope_.host.end(s.key)) scope_.host.cancel(s.key);
  std::string frame = "{\"id\":" + s.id;
  frame += ",\"cancelled\":true,\"usage\":";
  json_writer json(frame);
  add_usage(json, s.tally.total());
  frame += ",\"done\":true}";
  forget(s);
  control(std::move(frame));
}

void stream_dialect::grant(const value& message) {
  std::string id;
  const auto s = find(message, id);
  if (!s) return;
  fields from(message);
  std::int32_t n = 0;
  from.require("n");
  from.read("n", n, 1);
  if (!from.ok()) return refuse(id, from.error(), false);
  if (!s->limited) return; // the stream has no credit limit
  s->credit += n;
  if (s->credit <= 0 || s->key == 0) return;
  scope_.host.resume(s->key);
  enqueue(s);
}

void stream_dialect::on_event(engine_requests::key from, actors::event&& ev) {
  const auto found = by_key_.find(from);
  if (found == by_key_.end()) return;
  const auto s = found->second;
  if (ev.error.has_value()) {
    refuse(s->id, from_engine(std::move(*ev.error)), true);
    return forget(*s);
  }
  if (says_nothing(ev) && !ev.last) return; // reports only that a stored stream was found
  if (s->n_arrived++ <= s->after) {         // the client has this event already
    s->tally.add(ev);
    if (ev.last) end(*s);
    return;
  }
  waiting_bytes_ += cost(ev);
  s->held.push_back(std::move(ev));
  if (!may_send(*s)) scope_.host.pause(s->key);
  enqueue(s);
}

bool stream_dialect::may_send(const stream& s) const {
  if (s.held.empty()) return false;
  return !s.limited || s.credit > 0 || s.held.front().tokens.empty();
}

/// Pauses the request of a stream whose credit, the number of tokens that its client still accepts,
/// is used up. The request of a stored stream is not paused; on_event() instead stops reading the
/// stored events when tokens arrive.
void stream_dialect::pause_engine(const stream& s) {
  if (s.limited && s.stored.empty()) scope_.host.pause(s.key);
}

void stream_dialect::enqueue(const stream_ptr& s) {
  if (s->queued || !may_send(*s)) return;
  s->queued = true;
  ready_.push_back(s);
}

bool stream_dialect::next_frame(std::string& out) {
  if (!control_.empty()) {
    out = std::move(control_.front());
    control_.pop_front();
    waiting_bytes_ -= out.size();
    return true;
  }
  while (!ready_.empty()) {
    const auto s = ready_.front();
    ready_.pop_front();
    s->queued = false;
    if (!may_send(*s)) continue;
    out.clear();
    write_frame(*s, out);
    enqueue(s);
    return true;
  }
  return false;
}

namespace {

/// Writes [{"token","logprob","bytes","top_logprobs"}]; the first token has no log-probability.
void add_prompt_scores(json_writer& json, const std::vector<actors::token_output>& scores) {
  std::string rest;
  json_writer others(rest);
  add_chat_logprobs(others, std::span(scores).subspan(1), false);
  json.begin_array().add(nullptr);
  if (rest.size() > 2) json.raw(std::string_view(rest).substr(1, rest.size() - 2));
  json.end_array();
}

} // namespace

/// Writes "text" and, if the engine parses the output, "reasoning" and "calls", each call with its
/// new part.
void stream_dialect::write_text(json_writer& json, const stream& s, const actors::event& ev) {
  using kind = actors::output_part_kind;
  std::string text = ev.text;
  std::string reasoning;
  struct call {
    std::int32_t index;
    const std::string* name;
    const std::string* id; ///< empty if the model gave no id
    std::string arguments;
    bool ends;
  };
  std::vector<call> calls;
  for (const auto& part : ev.parts) {
    if (part.kind == kind::text) text += part.text;
    if (part.kind == kind::reasoning) reasoning += part.text;
    if (part.call < 0 || (part.call > 0 && !s.form.parallel_calls)) continue;
    if (calls.empty() || calls.back().index != part.call)
      calls.push_back({part.call, nullptr, nullptr, {}, false});
    if (part.kind == kind::call_begin) {
      calls.back().name = &part.text;
      calls.back().id = &part.call_id;
    }
    if (part.kind == kind::call_arguments) calls.back().arguments += part.text;
    if (part.kind == kind::call_end) calls.back().ends = part.complete;
  }
  json.field("text", text);
  if (!reasoning.empty()) json.field("reasoning", reasoning);
  if (calls.empty()) return;
  json.key("calls").begin_array();
  for (const auto& one : calls) {
    json.begin_object().field("index", one.index);
    if (one.name != nullptr) json.field("name", *one.name);
    if (one.id != nullptr && !one.id->empty()) json.field("id", *one.id);
    json.field("arguments", one.arguments);
    if (one.ends) json.field("complete", true);
    json.end_object();
  }
  json.end_array();
}

/// Merges waiting events into one frame, as long as they belong to one choice and credit lasts.
void stream_dialect::write_frame(stream& s, std::string& out) {
  actors::event merged = std::move(s.held.front());
  s.held.pop_front();
  std::size_t bytes = cost(merged);
  waiting_bytes_ -= bytes;
  s.tally.add(merged);
  ++s.n_written;
  s.credit -= static_cast<std::int64_t>(merged.tokens.size());
  while (may_send(s) && !merged.finish.has_value() && !merged.started &&
         s.held.front().choice == merged.choice && bytes < merged_bytes) {
    auto& next = s.held.front();
    bytes += cost(next);
    waiting_bytes_ -= cost(next);
    s.tally.add(next);
    ++s.n_written;
    s.credit -= static_cast<std::int64_t>(next.tokens.size());
    merged.text += next.text;
    for (auto& part : next.parts)
      merged.parts.push_back(std::move(part));
    for (auto& token : next.tokens)
      merged.tokens.push_back(std::move(token));
    merged.finish = next.finish;
    merged.stop_string = std::move(next.stop_string);
    merged.stop_token = next.stop_token;
    merged.last = next.last;
    s.held.pop_front();
  }
  json_writer json(out);
  json.begin_object().key("id").raw(s.id);
  if (!s.stored.empty()) json.field("seq", s.n_written - 1);
  write_output(json, s, merged);
  if (merged.last) {
    json.key("usage");
    add_usage(json, s.tally.total());
    json.field("done", true);
  }
  json.end_object();
  if (s.credit <= 0 && !merged.last) pause_engine(s);
  if (merged.last) forget(s);
}

void stream_dialect::write_output(json_writer& json, const stream& s,
                                  const actors::event& ev) const {
  if (ev.started && !s.stored.empty()) json.field("stored", s.stored);
  if (ev.started) json.field("prompt_tokens", ev.use.prompt_tokens);
  if (!ev.prompt_scores.empty()) {
    json.key("prompt_logprobs");
    add_prompt_scores(json, ev.prompt_scores);
  }
  const bool output =
      !ev.tokens.empty() || !ev.text.empty() || !ev.parts.empty() || ev.finish.has_value();
  if (s.form.n > 1 && output) json.field("choice", ev.choice);
  if (s.form.token_ids && !ev.tokens.empty()) {
    json.key("tokens");
    add_ids(json, std::span<const actors::token_output>(ev.tokens));
  }
  if (s.form.text && output) write_text(json, s, ev);
  if (s.form.logprobs && !ev.tokens.empty()) {
    json.key("logprobs");
    add_chat_logprobs(json, ev.tokens, false);
  }
  if (!ev.finish.has_value()) return;
  json.field("finish", finish_name(*ev.finish));
  add_stop_reason(json, ev.stop_string, ev.stop_token, s.form.stop_token_ids);
}

/// Ends a stream all of whose events the client has already received.
void stream_dialect::end(const stream& s) {
  std::string frame = "{\"id\":" + s.id;
  frame += ",\"seq\":" + std::to_string(s.n_arrived - 1) + ",\"usage\":";
  json_writer json(frame);
  add_usage(json, s.tally.total());
  frame += ",\"done\":true}";
  forget(s);
  control(std::move(frame));
}

void stream_dialect::forget(const stream& s) {
  for (const auto& ev : s.held)
    waiting_bytes_ -= cost(ev);
  const auto key = s.key; // copied, since the erasures may destroy `s`
  const auto id = s.id;
  if (const auto found = streams_.find(id); found != streams_.end()) found->second->held.clear();
  by_key_.erase(key);
  streams_.erase(id);
}

void stream_dialect::control(std::string frame) {
  waiting_bytes_ += frame.size();
  control_.push_back(std::move(frame));
}

void stream_dialect::refuse(const std::string& id, const api_error& error, bool over) {
  std::string frame = "{";
  if (!id.empty()) frame += "\"id\":" + id + ",";
  frame += "\"status\":" + std::to_string(map_error(error).http_status) + ",\"error\":";
  append_error_object(frame, error);
  frame += over && !id.empty() ? ",\"done\":true}" : "}";
  control(std::move(frame));
}

void stream_dialect::on_error(const api_error& error) {
  refuse({}, error, false);
}

} // namespace twill::net
