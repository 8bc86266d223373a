#include "net/batch/batch_routes.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include "net/batch/batch_service.hpp"
#include "net/http/multipart.hpp"
#include "net/http/reply_head.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

constexpr std::size_t most_files_per_page = 10'000;
constexpr std::size_t most_batches_per_page = 100;
constexpr std::size_t batches_per_page = 20;

http_reply unknown_file(const std::string& id) {
  return error_reply({errc::unknown_file,
                      "there is no file " + describe(value(id)) + "; GET /v1/files lists yours",
                      ""});
}

/// The value of a query parameter; empty when it is absent.
std::string query_of(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto pair = query.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name)
      return percent_decode(pair.substr(std::min(equals + 1, pair.size())));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return {};
}

/// `limit` of a page; nothing when it is no number from 1 to `most`.
std::optional<std::size_t> page_limit(const http_request& request, std::size_t standard,
                                      std::size_t most) {
  const auto text = query_of(request.query, "limit");
  if (text.empty()) return standard;
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc{} || end != text.data() + text.size() || limit < 1 || limit > most)
    return std::nullopt;
  return limit;
}

/// One page of `all` (newest first), after the entry that `after` names.
template <class Entry, class ToJson>
http_answer page(request_scope& scope, std::vector<Entry> all, std::size_t standard,
                 std::size_t most, ToJson to_json) {
  const auto limit = page_limit(scope.request, standard, most);
  if (!limit)
    return error_reply({errc::invalid_field,
                        "`limit` must be from 1 to " + std::to_string(most) + ", got " +
                            describe(value(query_of(scope.request.query, "limit"))),
                        "limit"});
  if (query_of(scope.request.query, "order") != "asc") std::reverse(all.begin(), all.end());
  const auto after = query_of(scope.request.query, "after");
  auto from = all.begin();
  if (!after.empty()) {
    from = std::find_if(all.begin(), all.end(), [&](const Entry& one) { return one.id == after; });
    if (from == all.end())
      return error_reply(
          {errc::invalid_field,
           "`after` must be the id of an entry of this list, got " + describe(value(after)),
           "after"});
    ++from;
  }
  const auto left = static_cast<std::size_t>(all.end() - from);
  const auto end = from + static_cast<std::ptrdiff_t>(std::min(*limit, left));
  std::string out;
  json_writer json(out);
  json.begin_object().field("object", "list").key("data").begin_array();
  for (auto one = from; one != end; ++one)
    json.raw(to_json(*one));
  json.end_array();
  if (from != end)
    json.field("first_id", from->id).field("last_id", std::prev(end)->id);
  else
    json.field("first_id", nullptr).field("last_id", nullptr);
  json.field("has_more", left > *limit).end_object();
  return http_reply{200, std::move(out)};
}

/// The file in an upload, if the upload is complete and its purpose is "batch".
result<form_part> uploaded(const http_request& request) {
  auto parts = parse_multipart(request.content_type, request.body);
  if (!parts.ok()) return fail(parts.code());
  const auto* purpose = find_part(parts.value(), "purpose");
  if (purpose == nullptr || purpose->data != "batch")
    return fail({errc::invalid_field,
                 "`purpose` must be \"batch\", got " +
                     (purpose == nullptr ? "nothing" : describe(value(purpose->data))),
                 "purpose"});
  const auto* file = find_part(parts.value(), "file");
  if (file == nullptr)
    return fail({errc::invalid_field, "`file` must be an uploaded file, got nothing", "file"});
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
  return page(scope, std::move(all), most_files_per_page, most_files_per_page, file_json);
}

http_answer show_file(request_scope& scope) {
  const auto found = scope.context.batches->files().find(scope.wildcard, scope.tenant);
  if (!found) return unknown_file(scope.wildcard);
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
  if (!found) return unknown_file(scope.wildcard);
  errno = 0;
  auto source = files.open(scope.wildcard);
  if (!source)
    return is_out_of_descriptors(errno) ? error_reply(no_descriptor_left())
                                        : unknown_file(scope.wildcard);
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
  return page(scope, scope.context.batches->batches().list(scope.tenant), batches_per_page,
              most_batches_per_page, batch_json);
}

http_answer show_batch(request_scope& scope) {
  const auto found = scope.context.batches->batches().find(scope.wildcard, scope.tenant);
  if (!found)
    return error_reply(
        {errc::unknown_batch,
         "there is no batch " + describe(value(scope.wildcard)) + "; GET /v1/batches lists yours",
         ""});
  return http_reply{200, batch_json(*found)};
}

http_answer cancel_batch(request_scope& scope) {
  const auto cancelled = scope.context.batches->cancel(scope.wildcard, scope.tenant);
  if (!cancelled.ok()) return error_reply(cancelled.code());
  return http_reply{200, batch_json(cancelled.value())};
}

} // namespace twill::net
