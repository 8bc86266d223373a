#include "net/stored/continuation.hpp"

#include "net/error_map.hpp"
#include "net/protocol/model_lookup.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/protocol/stored_reading.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {

remembered_ptr find_continued(const server_context& context, const stored_service& stored,
                              const std::string& id, const std::string& tenant) {
  if (auto warmed_up = context.responses.find(id, tenant, 0)) return warmed_up;
  if (api_of(id) != stored_api::responses) return nullptr;
  const auto found = stored.find(id, tenant);
  if (!found || found->running) return nullptr;
  const auto turn = stored_turn(*found->head, context.engine);
  return turn.ok() ? remember_stored(turn.value(), found->bytes->records) : nullptr;
}

result<actors::request> ask_again(const server_context& context, const stored_head& head) {
  const auto current = context.current.get();
  if (!current->keys.has_key(head.tenant)) return fail(unknown_key());
  const auto model =
      find_model(context.engine, value_object{{"model", head.model}}, current->tenant(head.tenant));
  if (!model.ok()) return fail(model.code());
  return ask_anew(head, {model.value(), current->limits, context.engine, context.find_previous,
                         head.tenant, context.options.server.name});
}

} // namespace twill::net
