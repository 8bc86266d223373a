#include "net/protocol/stored_reading.hpp"

#include <utility>

#include "net/error_map.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "net/protocol/openai/stored_generation.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/protocol/stream/stream_request.hpp"
#include "net/stored/stored_api.hpp"
#include "net/stored/stored_record.hpp"

namespace twill::net {

result<std::unique_ptr<reply_encoder>>
stored_stream(const stored_head& head, const actors::engine_port& engine, std::int64_t after) {
  if (api_of(head.id) != stored_api::responses)
    return stored_generation_reply(head, engine, true, after);
  auto turn = stored_turn(head, engine);
  if (!turn.ok()) return fail(turn.code());
  return stored_response_stream(std::move(turn).value(), after);
}

result<std::string> stored_object(const stored_head& head, const std::vector<std::string>& records,
                                  const actors::engine_port& engine) {
  if (api_of(head.id) == stored_api::responses) {
    const auto turn = stored_turn(head, engine);
    if (!turn.ok()) return fail(turn.code());
    return replay_response(turn.value(), records).object();
  }
  auto reply = stored_generation_reply(head, engine, false, -1);
  if (!reply.ok()) return fail(reply.code());
  std::string out;
  for (const auto& record : records) {
    auto ev = read_record(record);
    if (!ev) continue;
    if (ev->error && ev->error->code == actors::errc::cancelled) break;
    if (ev->error) return fail(from_engine(std::move(*ev->error)));
    reply.value()->on_event(0, std::move(*ev), out);
  }
  reply.value()->on_end(out);
  return out;
}

result<actors::request> ask_anew(const stored_head& head, const codec_context& context) {
  if (api_of(head.id) == stored_api::stream) return ask_stream_again(head, context);
  if (api_of(head.id) != stored_api::responses) return ask_generation_again(head, context);
  auto turn = ask_stored_again(head, context);
  if (!turn.ok()) return fail(turn.code());
  return std::move(turn.value().request);
}

} // namespace twill::net
