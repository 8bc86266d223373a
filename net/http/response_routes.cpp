#include "net/http/response_routes.hpp"

#include <algorithm>

#include "config/base/units.hpp"
#include "net/http/page_of_list.hpp"
#include "net/http/repeated_body.hpp"
#include "net/protocol/openai/event_id.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/protocol/stored_reading.hpp"
#include "net/server_name.hpp"
#include "net/stored/stored_api.hpp"
#include "net/stored/stored_service.hpp"

namespace twill::net {
namespace {

constexpr std::size_t items_per_page = 20;
constexpr std::size_t most_items_per_page = 100;
/// Estimated bytes of a response object, in memory or as JSON, per byte of its stored events.
constexpr std::int64_t bytes_of_object = 8;

http_reply no_response(const std::string& id, const server_context& context) {
  return error_reply(
      {errc::no_such_response,
       describe_absent({id_prefix_of(api_of(id)), response_ids.noun}, id,
                       context.options.server.name,
                       "it may have been deleted, or its time (`responses.keep`) is over"),
       ""});
}

/// True if the id belongs to the API of the request's path.
bool is_asked_here(const request_scope& scope) {
  const auto at = path_of(api_of(scope.wildcard));
  return scope.request.path.starts_with(std::string(at) + '/');
}

std::int64_t weight_of(const server_context& context, const std::string& id,
                       const std::string& tenant) {
  return std::min(context.stored->room_of_response(id, tenant),
                  context.options.server.max_body_bytes);
}

/// Returns the number of the last event that the client received; -1 if it received none. A browser
/// that reconnects by itself repeats the URL and adds the header Last-Event-ID.
result<std::int64_t> last_seen(const request_scope& scope) {
  if (const auto& named = scope.request.last_event_id; !named.empty()) {
    const auto place = read_event_id(named);
    if (place && place->id == scope.wildcard) return place->number;
    return fail(
        {errc::invalid_field,
         "Last-Event-ID must be the id of an event of this response, got " + describe(value(named)),
         ""});
  }
  const auto text = query_of(scope.request.query, "starting_after");
  if (text.empty()) return std::int64_t{-1};
  if (const auto number = read_event_number(text)) return *number;
  return fail(
      api_error::of({"starting_after", "be the number of an event", describe(value(text))}));
}

using reply_or_call = std::variant<http_reply, call>;

/// Runs `work(context, id, tenant)` on a worker thread; its weight is the number of bytes to read.
template <class Work>
slow_reply reading(const request_scope& scope, Work work) {
  return {[id = scope.wildcard, tenant = scope.tenant, &context = scope.context,
           work = std::move(work)] { return work(context, id, tenant); },
          weight_of(scope.context, scope.wildcard, scope.tenant)};
}

reply_or_call follow(server_context& context, const std::string& id, const std::string& tenant,
                     std::int64_t after, const value* body) {
  auto found = context.stored->follow(id, tenant);
  if (!found) return no_response(id, context);
  if (const auto* asked = found->head->asked.find("body");
      body != nullptr && (asked == nullptr || !repeats(*body, *asked)))
    return error_reply({errc::invalid_field,
                        "the body must be that of the request whose event Last-Event-ID names; "
                        "leave the header out to ask for something else",
                        ""});
  auto encoder = stored_stream(*found->head, context.engine, after);
  if (!encoder.ok()) return error_reply(encoder.code());
  call reading;
  reading.stream = true;
  reading.source = std::move(found->source);
  reading.encoder = std::move(encoder).value();
  return reading;
}

http_reply whole(server_context& context, const std::string& id, const std::string& tenant) {
  const auto found = context.stored->find(id, tenant);
  if (!found) return no_response(id, context);
  // A completion that still runs would look like a cancelled one.
  if (found->running && api_of(id) != stored_api::responses)
    return error_reply({errc::conflict,
                        "the completion is under way; read it with `?stream=true`, or retry when "
                        "it has ended",
                        ""});
  std::int64_t bytes = 0;
  for (const auto& record : found->bytes->records)
    bytes += static_cast<std::int64_t>(record.size());
  if (const auto most = context.output.max_bytes() / bytes_of_object; bytes > most)
    return error_reply({errc::invalid_field,
                        "the events of a response that is sent whole must take at most " +
                            format_bytes(most) +
                            " (an eighth of `server.max_output`), these take " +
                            format_bytes(bytes) + "; read it with `?stream=true`",
                        ""});
  auto object = stored_object(*found->head, found->bytes->records, context.engine);
  return object.ok() ? http_reply{200, std::move(object).value()} : error_reply(object.code());
}

/// The name of OpenAI's object that confirms a deletion.
std::string_view deleted_object(stored_api api) {
  switch (api) {
  case stored_api::responses:
    return "response";
  case stored_api::chat:
    return "chat.completion.deleted";
  case stored_api::completions:
    return "text_completion.deleted";
  case stored_api::stream:
    break;
  }
  return "stream.deleted";
}

} // namespace

http_answer show_response(request_scope& scope) {
  if (!is_asked_here(scope)) return no_response(scope.wildcard, scope.context);
  if (query_of(scope.request.query, "stream") != "true") return reading(scope, whole);
  const auto after = last_seen(scope);
  if (!after.ok()) return error_reply(after.code());
  return slow_call{
      [id = scope.wildcard, tenant = scope.tenant, after = after.value(),
       &context = scope.context] { return follow(context, id, tenant, after, nullptr); },
      weight_of(scope.context, scope.wildcard, scope.tenant)};
}

http_answer read_on(request_scope& scope, stored_api api, value body) {
  const auto place = read_event_id(scope.request.last_event_id);
  if (!place)
    return error_reply({errc::invalid_field,
                        "Last-Event-ID must be the id of an event of a stored stream, got " +
                            describe(value(scope.request.last_event_id)) +
                            "; leave the header out to ask anew",
                        ""});
  if (api_of(place->id) != api) return no_response(place->id, scope.context);
  return slow_call{[place = *place, tenant = scope.tenant,
                    body = std::make_shared<const value>(std::move(body)),
                    &context = scope.context] {
                     return follow(context, place.id, tenant, place.number, body.get());
                   },
                   weight_of(scope.context, place->id, scope.tenant)};
}

http_answer delete_response(request_scope& scope) {
  if (!is_asked_here(scope)) return no_response(scope.wildcard, scope.context);
  return slow_reply{[id = scope.wildcard, tenant = scope.tenant, &context = scope.context] {
    if (!context.stored->erase(id, tenant)) return no_response(id, context);
    std::string out;
    json_writer(out)
        .begin_object()
        .field("id", id)
        .field("object", deleted_object(api_of(id)))
        .field("deleted", true)
        .end_object();
    return http_reply{200, std::move(out)};
  }};
}

http_answer cancel_response(request_scope& scope) {
  if (!is_asked_here(scope)) return no_response(scope.wildcard, scope.context);
  return reading(scope,
                 [](server_context& context, const std::string& id, const std::string& tenant) {
                   if (!context.stored->cancel(id, tenant)) return no_response(id, context);
                   return whole(context, id, tenant);
                 });
}

http_answer list_input_items(request_scope& scope) {
  if (!is_asked_here(scope)) return no_response(scope.wildcard, scope.context);
  auto request = std::make_shared<http_request>(std::move(scope.request));
  return reading(
      scope, [request](server_context& context, const std::string& id, const std::string& tenant) {
        const auto found = context.stored->find(id, tenant);
        if (!found) return no_response(id, context);
        return page_of_list(*request, input_items_of(*found->head), items_per_page,
                            most_items_per_page, [](const input_item& one) { return one.json; });
      });
}

} // namespace twill::net
