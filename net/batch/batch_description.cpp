#include "net/batch/batch_description.hpp"

#include <string>

#include "net/endpoints.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/stored/stored_bytes.hpp"

namespace twill::net {
namespace {

constexpr std::int64_t format_version = 1;
/// In seconds since 1970. The clocks of C++ can represent times up to this one.
constexpr std::int64_t latest_time = 8'000'000'000;
constexpr std::int64_t most_lines = 1'000'000'000;

void read_whole(fields& from, std::string_view name, std::int64_t& to, std::int64_t least,
                std::int64_t most) {
  from.require(name);
  const auto* given = from.find(name);
  if (given == nullptr) return;
  const auto number = as_integer(*given);
  if (!number || *number < least || *number > most)
    return from.reject(
        name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
        *given);
  to = *number;
}

void read_text(fields& from, std::string_view name, std::string& to) {
  from.require(name);
  from.read(name, to);
}

/// Reads an id into `to`. An empty id is accepted only with `may_be_empty`.
void read_member_id(fields& from, std::string_view name, std::string_view prefix, std::string& to,
                    bool may_be_empty) {
  read_text(from, name, to);
  if (from.ok() && !is_id(to, prefix) && !(may_be_empty && to.empty()))
    from.reject(name, "an id that begins with " + std::string(prefix), value(to));
}

void read_times(fields& from, batch& to) {
  from.require("reached");
  const auto* given = from.object("reached");
  if (given == nullptr) return;
  fields times(*given, "reached.");
  for (std::size_t i = 0; i < n_batch_statuses; ++i)
    read_whole(times, name_of(static_cast<batch_status>(i)), to.reached_unix_s[i], 0, latest_time);
  if (!times.ok()) from.reject(times.error());
}

void read_faults(fields& from, std::vector<batch_fault>& to) {
  from.require("faults");
  const auto* given = from.find("faults");
  if (given == nullptr) return;
  if (given->as_list() == nullptr) return from.reject("faults", "a list", *given);
  for (const auto& one : *given->as_list()) {
    fields members(one, "faults.");
    batch_fault fault;
    read_text(members, "code", fault.code);
    read_text(members, "message", fault.message);
    read_text(members, "param", fault.param);
    read_whole(members, "line", fault.line, 0, most_lines);
    if (!members.ok()) return from.reject(members.error());
    to.push_back(std::move(fault));
  }
}

} // namespace

bool is_id(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && is_stored_id(name.substr(prefix.size()));
}

std::string describe_batch(const batch& record) {
  std::string out;
  json_writer json(out);
  json.begin_object().field("version", format_version).field("id", record.id);
  json.field("number", record.number).field("tenant", record.tenant);
  json.field("endpoint", record.endpoint).field("input_file_id", record.input_file_id);
  json.field("completion_window", record.completion_window).field("metadata", record.metadata);
  json.field("status", name_of(record.status)).key("reached").begin_object();
  for (std::size_t i = 0; i < n_batch_statuses; ++i)
    json.field(name_of(static_cast<batch_status>(i)), record.reached_unix_s[i]);
  json.end_object().field("expires_at", record.expires_unix_s).field("total", record.total);
  json.field("completed", record.completed).field("failed", record.failed);
  json.field("output_file_id", record.output_file_id).field("error_file_id", record.error_file_id);
  json.field("output_under_way", record.output_under_way);
  json.field("errors_under_way", record.errors_under_way).key("faults").begin_array();
  for (const auto& fault : record.faults) {
    json.begin_object().field("code", fault.code).field("message", fault.message);
    json.field("param", fault.param).field("line", fault.line).end_object();
  }
  json.end_array().end_object();
  return out;
}

result<batch> read_description(std::string_view text) {
  auto parsed = parse_own_json(text);
  if (!parsed.ok()) return fail(parsed.code());
  fields from(parsed.value());
  batch out;
  std::int64_t version = 0;
  read_whole(from, "version", version, format_version, format_version);
  read_member_id(from, "id", "batch_", out.id, false);
  read_whole(from, "number", out.number, 0, std::int64_t{1} << 53);
  read_text(from, "tenant", out.tenant);
  read_text(from, "endpoint", out.endpoint);
  if (from.ok() && find_batch_codec(out.endpoint) == nullptr)
    from.reject("endpoint", batch_paths(), value(out.endpoint));
  read_member_id(from, "input_file_id", "file-", out.input_file_id, false);
  read_text(from, "completion_window", out.completion_window);
  if (const auto* metadata = from.object("metadata")) out.metadata = *metadata;
  std::string status;
  read_text(from, "status", status);
  if (const auto named = status_named(status))
    out.status = *named;
  else
    from.reject("status", "a status of OpenAI's Batch object", value(status));
  read_times(from, out);
  read_whole(from, "expires_at", out.expires_unix_s, 0, latest_time);
  read_whole(from, "total", out.total, 0, most_lines);
  read_whole(from, "completed", out.completed, 0, most_lines);
  read_whole(from, "failed", out.failed, 0, most_lines);
  read_member_id(from, "output_file_id", "file-", out.output_file_id, true);
  read_member_id(from, "error_file_id", "file-", out.error_file_id, true);
  read_member_id(from, "output_under_way", "file-", out.output_under_way, true);
  read_member_id(from, "errors_under_way", "file-", out.errors_under_way, true);
  const bool named_twice =
      !out.output_under_way.empty() && out.output_under_way == out.errors_under_way;
  if (from.ok() && (named_twice || out.output_under_way == out.input_file_id ||
                    out.errors_under_way == out.input_file_id))
    from.reject("output_under_way", "another file than input_file_id and errors_under_way",
                value(out.output_under_way));
  read_faults(from, out.faults);
  if (!from.ok()) return fail(from.error());
  return out;
}

} // namespace twill::net
