#include "net/http/response_routes.hpp"

#include <charconv>

#include "net/http/page_of_list.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/stored/stored_service.hpp"

namespace twill::net {
namespace {

constexpr std::size_t items_per_page = 20;
constexpr std::size_t most_items_per_page = 100;

http_reply no_response(const std::string& id) {
  return error_reply({errc::no_such_response,
                      "there is no stored response " + describe(value(id)) +
                          "; it may have been deleted, or its time (`responses.keep`) is over",
                      ""});
}

/// `starting_after`: -1 when it is absent; nothing when it is no number.
std::optional<std::int64_t> starting_after(const http_request& request) {
  const auto text = query_of(request.query, "starting_after");
  if (text.empty()) return -1;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

http_reply object_reply(const stored_service::view& found, const actors::engine_port& engine) {
  const auto turn = stored_turn(*found.head, engine);
  if (!turn.ok()) return error_reply(turn.code());
  return {200, replay_response(turn.value(), found.bytes->records).object()};
}

http_answer stream(request_scope& scope) {
  const auto after = starting_after(scope.request);
  if (!after)
    return error_reply({errc::invalid_field,
                        "`starting_after` must be the number of an event, got " +
                            describe(value(query_of(scope.request.query, "starting_after"))),
                        "starting_after"});
  using reply_or_call = std::variant<http_reply, call>;
  return slow_call([id = scope.wildcard, tenant = scope.tenant, after = *after,
                    &context = scope.context]() -> reply_or_call {
    auto found = context.stored->follow(id, tenant);
    if (!found) return no_response(id);
    auto turn = stored_turn(*found->head, context.engine);
    if (!turn.ok()) return error_reply(turn.code());
    call reading;
    reading.stream = true;
    reading.source = std::move(found->source);
    reading.encoder = stored_response_stream(std::move(turn).value(), after);
    return reading;
  });
}

} // namespace

http_answer show_response(request_scope& scope) {
  if (query_of(scope.request.query, "stream") == "true") return stream(scope);
  return slow_reply([id = scope.wildcard, tenant = scope.tenant, &context = scope.context] {
    const auto found = context.stored->find(id, tenant);
    return found ? object_reply(*found, context.engine) : no_response(id);
  });
}

http_answer delete_response(request_scope& scope) {
  return slow_reply([id = scope.wildcard, tenant = scope.tenant, &context = scope.context] {
    if (!context.stored->erase(id, tenant)) return no_response(id);
    std::string out;
    json_writer(out)
        .begin_object()
        .field("id", id)
        .field("object", "response")
        .field("deleted", true)
        .end_object();
    return http_reply{200, std::move(out)};
  });
}

http_answer cancel_response(request_scope& scope) {
  return slow_reply([id = scope.wildcard, tenant = scope.tenant, &context = scope.context] {
    if (!context.stored->cancel(id, tenant)) return no_response(id);
    const auto found = context.stored->find(id, tenant);
    return found ? object_reply(*found, context.engine) : no_response(id);
  });
}

http_answer list_input_items(request_scope& scope) {
  auto request = std::make_shared<http_request>(std::move(scope.request));
  return slow_reply(
      [request, id = scope.wildcard, tenant = scope.tenant, &context = scope.context] {
        const auto found = context.stored->find(id, tenant);
        if (!found) return no_response(id);
        return page_of_list(*request, input_items_of(*found->head), items_per_page,
                            most_items_per_page, [](const input_item& one) { return one.json; });
      });
}

} // namespace twill::net
