#include "tools/twill/served_models.hpp"

#include <chrono>
#include <utility>

#include "tools/common/http_client.hpp"
#include "tools/twill/refusal.hpp"

namespace twill::tools {

std::vector<model_view> served_models(const endpoint& where) {
  const auto reply = http_request(where, "/v1/models", {}, std::chrono::seconds(10));
  if (reply.status != 200) throw client_error(why_refused(where, reply.status, reply.body));
  daemon_view view;
  if (!take_models(reply.body, view))
    throw client_error(where.url() +
                       " answers, but not as twilld does; name the daemon with --url");
  return std::move(view.models);
}

} // namespace twill::tools
