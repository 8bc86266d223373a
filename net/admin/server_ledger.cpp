#include "net/admin/server_ledger.hpp"

#include <string>
#include <utility>

#include "net/admin/admin_routes.hpp"
#include "net/admin/engine_answer.hpp"
#include "net/batch/batch_service.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/stored/stored_service.hpp"

namespace twill::net {

void account(const server_context& context, ledger& to) {
  context.sessions.account(to);
  to.taken("open sockets", context.sockets.count() + context.admin_sockets.count());
  to.taken("bytes of messages that are being received", context.input.total_bytes());
  to.taken("bytes of output that clients have not taken", context.output.total_bytes());
  if (context.waiting_for_worker)
    to.taken("bytes of bodies that wait for the worker", context.waiting_for_worker());
  if (context.stored != nullptr) context.stored->account(to);
}

namespace {

std::string as_json(const ledger& all) {
  std::string body;
  json_writer json(body);
  json.begin_object().field("at_rest", all.is_at_rest()).key("faults").begin_array();
  for (const auto& fault : all.faults())
    json.add(fault);
  json.end_array().key("accounts").begin_array();
  for (const auto& [what, one] : all.accounts()) {
    json.begin_object().field("what", what).field("taken", one.taken).key("holders").begin_array();
    for (const auto& [holder, amount] : one.holders)
      json.begin_object().field("name", holder).field("amount", amount).end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return body;
}

} // namespace

/// The handler of `GET /admin/ledger`, which lists how much of each resource is taken and which
/// objects have it (config/base/ledger.hpp). The engine and the batch thread report their parts of
/// the list asynchronously; the worker thread waits for both parts.
http_answer show_ledger(request_scope& scope) {
  return slow_reply([&context = scope.context] {
    auto all =
        engine_answer<ledger>([&](auto callback) { context.engine.account(std::move(callback)); });
    if (!all)
      return error_reply({errc::busy,
                          "the engine has not answered within a second, since it loads a model or "
                          "computes a long step; retry later",
                          ""});
    const auto of_batches = engine_answer<ledger>(
        [&](auto callback) { context.batches->account(std::move(callback)); });
    if (!of_batches)
      return error_reply(
          {errc::busy, "the batch thread has not answered within a second; retry later", ""});
    all->add(*of_batches, "");
    account(context, *all);
    return http_reply{200, as_json(*all)};
  });
}

} // namespace twill::net
