#include "net/protocol/openai/responses_reply.hpp"

#include "net/error_map.hpp"

namespace twill::net {
namespace {

class responses_reply final : public reply_encoder {
public:
  responses_reply(response_turn turn, response_store& store, std::string tenant)
      : turn_(std::move(turn)), store_(store), tenant_(std::move(tenant)),
        events_(turn_.echo, turn_.stream ? sink() : response_events::sink()) {}

  void on_event(std::size_t, actors::event&& ev, std::string& out) override {
    finished_ = finished_ || ev.finish.has_value();
    events_.on_event(std::move(ev));
    flush(out);
  }

  void on_end(std::string& out) override {
    if (finished_ && turn_.echo.store)
      store_.put(turn_.echo.identity.id, tenant_, 0,
                 remember(turn_, events_.text(), events_.tool_calls()));
    if (!turn_.stream) out += events_.object();
  }

  void on_error(const api_error& error, std::string& out) override {
    if (!events_.fail(error)) {
      out += "event: error\ndata: ";
      out += error_body(error);
      out += "\n\n";
    }
    flush(out);
  }

private:
  response_events::sink sink() {
    return [this](std::string_view type, std::string json) {
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

  response_turn turn_;
  response_store& store_;
  std::string tenant_;
  std::string written_;
  response_events events_;
  bool finished_ = false;
};

} // namespace

result<call> parse_responses(const value& body, const codec_context& context) {
  auto turn = parse_response_turn(body, context, [&](const std::string& id) {
    return context.responses.find(id, context.tenant, 0);
  });
  if (!turn.ok()) return fail(turn.code());
  if (!turn.value().generate)
    return fail({errc::invalid_field, "`generate` must be true or absent over HTTP, got false",
                 "generate"});
  call generation;
  generation.stream = turn.value().stream;
  generation.requests.push_back(std::move(turn.value().request));
  generation.encoder =
      std::make_unique<responses_reply>(std::move(turn).value(), context.responses, context.tenant);
  return generation;
}

} // namespace twill::net
