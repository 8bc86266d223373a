#include "net/protocol/openai/responses_reply.hpp"

#include <variant>

#include "net/error_map.hpp"
#include "net/protocol/openai/stored_responses.hpp"

namespace twill::net {
namespace {

class responses_reply final : public reply_encoder {
public:
  explicit responses_reply(response_turn turn)
      : stream_(turn.stream),
        events_(std::move(turn.echo), stream_ ? sink() : response_events::sink()) {}

  /// The constructor for a stored response. It emits only events with numbers above `after`. An
  /// error that comes before the first event is reported as an event too.
  responses_reply(response_turn turn, std::int64_t after) : responses_reply(std::move(turn)) {
    after_ = after;
    is_stored_ = true;
  }

  void on_event(std::size_t, actors::event&& ev, std::string& out) override {
    queue();
    if (!says_nothing(ev)) events_.on_event(std::move(ev));
    flush(out);
  }

  void on_end(std::string& out) override {
    if (!stream_) out += events_.object();
  }

  void on_error(const api_error& error, std::string& out) override {
    const auto* code = std::get_if<actors::errc>(&error.code);
    queue();
    if (code != nullptr && *code == actors::errc::cancelled) {
      events_.cancel();
    } else if ((code != nullptr && *code == actors::errc::interrupted) || !fail(error)) {
      flush(out);
      out += "event: error\ndata: ";
      out += error_body(error);
      out += "\n\n";
    }
    flush(out);
  }

private:
  bool fail(const api_error& error) {
    if (is_stored_ && !events_.begun()) events_.begin();
    return events_.fail(error);
  }

  void queue() {
    if (events_.echo().background && !events_.begun()) events_.queue();
  }

  response_events::sink sink() {
    return [this](std::string_view type, std::string json) {
      if (n_written_++ <= after_) return;
      written_ += "event: ";
      written_ += type;
      written_ += "\ndata: ";
      written_ += json;
      written_ += "\n\n";
    };
  }

  void flush(std::string& out) {
    out += written_;
    written_.clear();
  }

  bool stream_;
  std::int64_t after_ = -1;
  bool is_stored_ = false;
  std::int64_t n_written_ = 0; ///< number of the next event
  std::string written_;
  response_events events_;
};

} // namespace

result<call> parse_responses(const value& body, const codec_context& context) {
  auto turn = parse_response_turn(body, context, [&](const std::string& id) {
    return context.find_previous(id, context.tenant);
  });
  if (!turn.ok()) return fail(turn.code());
  if (!turn.value().generate)
    return fail(api_error::of({"generate", "be true or absent over HTTP", "false"}));
  call generation;
  generation.stream = turn.value().stream;
  if (turn.value().echo.store)
    generation.stored = stored_head_of(turn.value(), body, context.tenant);
  generation.requests.push_back(std::move(turn.value().request));
  generation.encoder = std::make_unique<responses_reply>(std::move(turn).value());
  return generation;
}

std::unique_ptr<reply_encoder> stored_response_stream(response_turn turn, std::int64_t after) {
  turn.stream = true;
  return std::make_unique<responses_reply>(std::move(turn), after);
}

} // namespace twill::net
