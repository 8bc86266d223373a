#include "net/http/page_routes.hpp"

#include <algorithm>

#include "net/error_map.hpp"
#include "net/http/page_files.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

/// A page may run only its own files, connect only to its own server, and not insert text as
/// markup.
constexpr std::string_view content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

/// True if If-None-Match lists `etag`. The tags of this server contain no commas and no inner
/// quotes.
bool lists(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || if_none_match.find(etag) != std::string_view::npos;
}

http_answer send(const request_scope& scope, const std::string& name) {
  const auto files = page_files();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
  if (found == files.end())
    return error_reply({errc::unknown_route,
                        "no page has a file " + describe(value(name)) +
                            "; the page at /routes lists what is served",
                        ""});
  http_reply reply;
  reply.headers = {{"ETag", std::string(found->etag)},
                   {"Cache-Control", "no-cache"},
                   {"Content-Security-Policy", std::string(content_policy)},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"},
                   {"Cross-Origin-Opener-Policy", "same-origin"},
                   {"Cross-Origin-Resource-Policy", "same-origin"}};
  if (lists(scope.request.if_none_match, found->etag)) {
    reply.status = 304;
    return reply;
  }
  reply.body = found->bytes;
  reply.content_type = found->content_type;
  return reply;
}

} // namespace

http_answer send_chat_page(request_scope& scope) {
  return send(scope, "index.html");
}
http_answer send_dashboard(request_scope& scope) {
  return send(scope, "dashboard.html");
}
http_answer send_page_file(request_scope& scope) {
  return send(scope, scope.wildcard);
}

} // namespace twill::net
