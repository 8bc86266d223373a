#include "tools/twilld/collector.hpp"

#include <exception>
#include <stdexcept>
#include <string>

#include "tools/common/http_client.hpp"

namespace twill::tools {
namespace {

endpoint address_of(const std::string& url) {
  try {
    return parse_endpoint(url);
  } catch (const client_error&) { // its message would name --url instead of `tracing.endpoint`
    throw std::runtime_error(
        "`tracing.endpoint` must be an address like http://127.0.0.1:4318, got \"" + url + "\"");
  }
}

} // namespace

net::tracer::post post_to(const config::tracing_options& options) {
  const endpoint where = address_of(options.endpoint);
  const std::string path = where.prefix.ends_with("/v1/traces") ? "" : "/v1/traces";
  return [where, path, headers = options.headers](const std::string& body,
                                                  std::chrono::milliseconds within) {
    try {
      return http_send(where, {path, body, "application/x-protobuf", headers}, within).status;
    } catch (const std::exception&) { // the tracer logs that the collector does not answer
      return 0;
    }
  };
}

} // namespace twill::tools
