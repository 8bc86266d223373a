#include "net/batch/batch_routes.hpp"

#include <algorithm>
#include <cerrno>

#include "net/batch/batch_service.hpp"
#include "net/http/multipart.hpp"
#include "net/http/page_of_list.hpp"
#include "net/http/reply_head.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

constexpr std::size_t most_files_per_page = 10'000;
constexpr std::size_t most_batches_per_page = 100;
constexpr std::size_t batches_per_page = 20;

http_reply unknown_file(const request_scope& scope) {
  return error_reply(no_such_file(scope.wildcard, scope.context.options.server.name));
}

/// Returns the file in an upload, or an error if the upload is incomplete or its purpose is not
/// "batch".
result<form_part> uploaded(const http_request& request) {
  auto parts = parse_multipart(request.content_type, request.body);
  if (!parts.ok()) return fail(parts.code());
  const auto* purpose = find_part(parts.value(), "purpose");
  if (purpose == nullptr || purpose->data != "batch")
    return fail(api_error::of({"purpose", "be \"batch\"",
                               purpose == nullptr ? "nothing" : describe(value(purpose->data))}));
  const auto* file = find_part(parts.value(), "file");
  if (file == nullptr) return fail(api_error::of({"file", "be an uploaded file", "nothing"}));
  return *file;
}

} // namespace

http_answer upload_file(request_scope& scope) {
  auto request = std::make_shared<http_request>(std::move(scope.request));
  return slow_reply([request, tenant = scope.tenant, &files = scope.context.batches->files()] {
    const auto file = uploaded(*request);
    if (!file.ok()) return error_reply(file.code());
    const auto& name = file.value().filename;
    const auto stored =
        files.put({"", tenant, name.empty() ? "file" : name, "batch", 0, 0}, file.value().data);
    if (!stored.ok()) return error_reply(stored.code());
    return http_reply{200, file_json(stored.value())};
  });
}

http_answer list_files(request_scope& scope) {
  auto all = scope.context.batches->files().list(scope.tenant);
  const auto purpose = query_of(scope.request.query, "purpose");
  if (!purpose.empty())
    std::erase_if(all, [&](const stored_file& one) { return one.purpose != purpose; });
  return page_of_list(scope.request, std::move(all), most_files_per_page, most_files_per_page,
                      file_json);
}

http_answer show_file(request_scope& scope) {
  const auto found = scope.context.batches->files().find(scope.wildcard, scope.tenant);
  if (!found) return unknown_file(scope);
  return http_reply{200, file_json(*found)};
}

http_answer delete_file(request_scope& scope) {
  const auto erased = scope.context.batches->files().erase(scope.wildcard, scope.tenant);
  if (!erased.ok()) return error_reply(erased.code());
  std::string out;
  json_writer json(out);
  json.begin_object().field("id", scope.wildcard).field("object", "file");
  json.field("deleted", true).end_object();
  return http_reply{200, std::move(out)};
}

http_answer file_content(request_scope& scope) {
  const auto& files = scope.context.batches->files();
  const auto found = files.find(scope.wildcard, scope.tenant);
  if (!found) return unknown_file(scope);
  errno = 0;
  auto source = files.open(scope.wildcard);
  if (!source)
    return is_out_of_descriptors(errno) ? error_reply(no_descriptor_left()) : unknown_file(scope);
  return file_reply{std::move(source), found->bytes, "application/octet-stream"};
}

http_answer create_batch(request_scope& scope) {
  const auto body = parse_json(scope.request.body);
  if (!body.ok()) return error_reply(body.code());
  const auto created = scope.context.batches->create(body.value(), scope.tenant);
  if (!created.ok()) return error_reply(created.code());
  return http_reply{200, batch_json(created.value())};
}

http_answer list_batches(request_scope& scope) {
  return page_of_list(scope.request, scope.context.batches->batches().list(scope.tenant),
                      batches_per_page, most_batches_per_page, batch_json);
}

http_answer show_batch(request_scope& scope) {
  const auto found = scope.context.batches->batches().find(scope.wildcard, scope.tenant);
  if (!found) return error_reply(no_such_batch(scope.wildcard, scope.context.options.server.name));
  return http_reply{200, batch_json(*found)};
}

http_answer cancel_batch(request_scope& scope) {
  const auto cancelled = scope.context.batches->cancel(scope.wildcard, scope.tenant);
  if (!cancelled.ok()) return error_reply(cancelled.code());
  return http_reply{200, batch_json(cancelled.value())};
}

} // namespace twill::net
