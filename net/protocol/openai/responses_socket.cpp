#include "net/protocol/openai/responses_socket.hpp"

#include "net/error_map.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/openai/stored_responses.hpp"

namespace twill::net {
namespace {

constexpr std::size_t max_waiting_turns = 16; ///< per lane
constexpr std::size_t max_lane_name_bytes = 128;
constexpr std::size_t spare_bytes = 16 * 1024; ///< most unused capacity of a queued frame

/// Returns the lane that a message names; empty for the unnamed lane.
result<std::string> read_lane(const value& message) {
  const auto* name = message.find("stream_id");
  if (name == nullptr || name->is_null()) return std::string();
  const auto* text = name->as_string();
  if (text != nullptr && !text->empty() && text->size() <= max_lane_name_bytes) return *text;
  return fail(api_error::of({"stream_id", "be a string of 1 to 128 bytes", describe(*name)}));
}

std::string previous_id(const value& message) {
  const auto* id = message.find("previous_response_id");
  return id != nullptr && id->as_string() != nullptr ? *id->as_string() : std::string();
}

} // namespace

responses_socket::~responses_socket() {
  for (const auto& entry : lanes_)
    store_.erase(entry.second.newest, scope_id_);
}

void responses_socket::on_message(std::string_view text) {
  auto parsed = parse_json(text);
  if (!parsed.ok()) return refuse({}, parsed.code());
  const auto* type = parsed.value().find("type");
  const auto* name = type == nullptr ? nullptr : type->as_string();
  if (name != nullptr && *name == "response.create") return create(parsed.value(), text);
  if (name != nullptr && *name == "response.cancel") return cancel(parsed.value());
  refuse({}, api_error::of({"type", "be \"response.create\" or \"response.cancel\"",
                            type == nullptr ? std::string("nothing") : describe(*type)}));
}

responses_socket::lane* responses_socket::open_lane(const std::string& name) {
  const auto most = static_cast<std::size_t>(scope_.options.server.max_streams_per_socket);
  if (const auto found = lanes_.find(name); found != lanes_.end()) {
    found->second.last_use = ++uses_;
    return &found->second;
  }
  if (lanes_.size() >= most) { // remove the idle lane that was unused for longest
    auto oldest = lanes_.end();
    for (auto it = lanes_.begin(); it != lanes_.end(); ++it)
      if (it->second.running == 0 &&
          (oldest == lanes_.end() || it->second.last_use < oldest->second.last_use))
        oldest = it;
    if (oldest == lanes_.end()) return nullptr;
    store_.erase(oldest->second.newest, scope_id_);
    lanes_.erase(oldest);
  }
  auto& created = lanes_[name];
  created.last_use = ++uses_;
  return &created;
}

void responses_socket::create(const value& message, std::string_view text) {
  const auto name = read_lane(message);
  if (!name.ok()) return refuse({}, name.code());
  if (scope_.host.output_full()) return refuse(name.value(), output_is_full());
  auto* const to = open_lane(name.value());
  if (to == nullptr)
    return refuse(name.value(), {errc::stream_limit,
                                 "this socket has " +
                                     std::to_string(scope_.options.server.max_streams_per_socket) +
                                     " lanes at work, which is the most "
                                     "(`server.max_streams_per_socket`); wait for one to end",
                                 "stream_id"});
  if (to->running == 0) return start_turn(name.value(), message);
  const auto most_bytes = static_cast<std::size_t>(scope_.options.server.max_frame_bytes);
  if (to->waiting.size() >= max_waiting_turns || waiting_turns_bytes_ + text.size() > most_bytes)
    return refuse(name.value(),
                  {errc::stream_limit,
                   "too many turns wait: at most " + std::to_string(max_waiting_turns) +
                       " may wait in a lane, and " + std::to_string(most_bytes) +
                       " bytes in all lanes of a socket; send more when some have ended",
                   "stream_id"});
  waiting_turns_bytes_ += text.size();
  to->waiting.emplace_back(text);
}

void responses_socket::start_next(const std::string& name) {
  auto& from = lanes_[name];
  while (from.running == 0 && !from.waiting.empty()) {
    const auto text = std::move(from.waiting.front());
    from.waiting.pop_front();
    waiting_turns_bytes_ -= text.size();
    if (const auto message = parse_json(text); message.ok()) start_turn(name, message.value());
  }
}

void responses_socket::start_turn(const std::string& name, const value& message) {
  const auto refuse_turn = [&](const api_error& error) {
    if (const auto id = previous_id(message); !id.empty()) store_.erase(id, scope_id_);
    refuse(name, error);
  };
  const auto current = scope_.current.get();
  // A reload of the configuration may have removed the key since the handshake.
  if (!current->keys.admit(scope_.holder)) return refuse_turn(unknown_key());
  auto model = find_model(scope_.engine, message, current->tenant(scope_.holder.tenant));
  if (!model.ok()) return refuse_turn(model.code());
  const codec_context context{model.value(),        current->limits,
                              scope_.engine,        scope_.find_previous,
                              scope_.holder.tenant, scope_.options.server.name};
  auto parsed = parse_response_turn(message, context, [this](const std::string& id) {
    const auto own = store_.find(id, scope_.holder.tenant, scope_id_);
    return own != nullptr ? own : scope_.find_previous(id, scope_.holder.tenant);
  });
  if (!parsed.ok()) return refuse_turn(parsed.code());
  turn created;
  created.lane = name;
  created.parsed = std::move(parsed).value();
  created.events = std::make_unique<response_events>(
      created.parsed.echo, [this](std::string_view, std::string json) { push(std::move(json)); },
      name);
  if (!created.parsed.generate) {
    created.events->complete_empty();
    return remember_turn(created);
  }
  created.parsed.request.tenant = scope_.holder.tenant;
  created.parsed.request.client_id = scope_.client_id + "/" + created.parsed.echo.identity.id;
  const auto key = start_request(created, message);
  if (!key.ok()) return refuse_turn(key.code());
  lanes_[name].running = key.value();
  turns_.emplace(key.value(), std::move(created));
}

result<engine_requests::key> responses_socket::start_request(turn& of, const value& message) {
  auto& asked = of.parsed.request;
  if (!of.parsed.echo.store) return scope_.host.start(std::move(asked));
  auto head = stored_head_of(of.parsed, message, scope_.holder.tenant);
  return scope_.host.start_stored(std::move(head), std::move(asked));
}

/// Remembers the response of a finished request, so that a later request can continue it. A stored
/// response (`store: true`) need not be remembered, because it is found in net/stored. A warm-up,
/// which is a request with `generate: false`, is never stored, so it is always remembered.
void responses_socket::remember_turn(const turn& t) {
  auto& at = lanes_[t.lane];
  store_.erase(at.newest, scope_id_);
  at.newest.clear();
  const bool shared = t.parsed.echo.store;
  if (shared && t.parsed.generate) return;
  const auto& id = t.parsed.echo.identity.id;
  store_.put(id, scope_.holder.tenant, shared ? 0 : scope_id_,
             remember(t.parsed, t.events->text(), t.events->tool_calls()));
  at.newest = shared ? std::string() : id;
}

void responses_socket::on_event(engine_requests::key from, actors::event&& ev) {
  const auto found = turns_.find(from);
  if (found == turns_.end()) return;
  auto& t = found->second;
  if (says_nothing(ev) && !ev.last) { // the response has been stored, and has no output yet
    if (t.parsed.echo.background) t.events->queue();
    return;
  }
  if (ev.error.has_value() && ev.error->code == actors::errc::cancelled) {
    t.events->cancel();
    return end_turn(from);
  }
  if (ev.error.has_value()) return fail_turn(from, from_engine(std::move(*ev.error)));
  const bool last = ev.last;
  const bool finishes = ev.finish.has_value();
  t.events->on_event(std::move(ev));
  if (finishes) remember_turn(t);
  if (last) end_turn(from);
}

void responses_socket::end_turn(engine_requests::key key) {
  const auto found = turns_.find(key);
  const auto name = found->second.lane;
  turns_.erase(found);
  lanes_[name].running = 0;
  start_next(name);
}

void responses_socket::fail_turn(engine_requests::key key, const api_error& error) {
  auto& t = turns_.at(key);
  if (const auto& id = t.parsed.echo.previous_response_id; !id.empty()) store_.erase(id, scope_id_);
  // An interrupted response may be continued later, and its next event then has the next number.
  // Therefore no event "response.failed" is sent now, which would take that number.
  const auto* code = std::get_if<actors::errc>(&error.code);
  const bool goes_on = code != nullptr && *code == actors::errc::interrupted;
  if (goes_on || !t.events->fail(error)) refuse(t.lane, error);
  end_turn(key);
}

void responses_socket::cancel(const value& message) {
  const auto name = read_lane(message);
  if (!name.ok()) return refuse({}, name.code());
  const auto* wanted = message.find("response_id");
  const bool by_id = wanted != nullptr && !wanted->is_null();
  engine_requests::key key = 0;
  for (const auto& [candidate, t] : turns_) {
    const bool same = by_id ? value(t.parsed.echo.identity.id) == *wanted : t.lane == name.value();
    if (same) key = candidate;
  }
  if (key == 0)
    return refuse(
        name.value(),
        {errc::unknown_stream,
         by_id ? "`response_id` must name a running response, got " + describe(*wanted)
               : std::string("no response runs in this lane; name a running one by `response_id`"),
         by_id ? "response_id" : "stream_id"});
  if (scope_.host.end(key)) return; // on_event() will receive the end
  turns_.at(key).events->cancel();
  end_turn(key);
}

void responses_socket::refuse(const std::string& lane, const api_error& error) {
  std::string frame = "{\"type\":\"error\",\"status\":";
  frame += std::to_string(map_error(error).http_status);
  if (!lane.empty()) {
    frame += ",\"stream_id\":";
    append_json_string(frame, lane);
  }
  frame += ",\"error\":";
  append_error_object(frame, error);
  frame += '}';
  push(std::move(frame));
}

void responses_socket::on_error(const api_error& error) {
  refuse({}, error);
}

void responses_socket::push(std::string frame) {
  if (frame.capacity() - frame.size() > spare_bytes)
    frame.shrink_to_fit(); // the unused capacity is not counted
  waiting_bytes_ += frame.size();
  frames_.push_back(std::move(frame));
}

bool responses_socket::next_frame(std::string& out) {
  if (frames_.empty()) return false;
  out = std::move(frames_.front());
  frames_.pop_front();
  waiting_bytes_ -= out.size();
  return true;
}

} // namespace twill::net
