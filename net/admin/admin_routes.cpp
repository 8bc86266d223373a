#include "net/admin/admin_routes.hpp"

#include "net/endpoints.hpp"
#include "net/metrics.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

http_answer list_admin_routes(request_scope& scope) {
  std::string body;
  json_writer json(body);
  json.begin_object().key("routes").begin_array();
  for (const auto& row : endpoints(scope.request.by)) {
    json.begin_object().field("method", name_of(row.method)).field("path", row.path);
    json.field("websocket", std::holds_alternative<dialect_opener>(row.action)).end_object();
  }
  json.end_array().end_object();
  return http_reply{200, std::move(body)};
}

http_answer admin_metrics(request_scope& scope) {
  return http_reply{200, admin_metrics_text(scope.context.engine, scope.context.sockets.count()),
                    "text/plain; version=0.0.4; charset=utf-8"};
}

} // namespace twill::net
