#include "net/batch/batch.hpp"

#include <algorithm>
#include <chrono>

#include "net/protocol/json/json_parse.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/random_id.hpp"

namespace twill::net {
namespace {

constexpr std::array<const char*, n_batch_statuses> names{"validating", "in_progress", "finalizing",
                                                          "completed",  "failed",      "expired",
                                                          "cancelling", "cancelled"};

void add_time(json_writer& json, const char* name, std::int64_t unix_s) {
  if (unix_s > 0)
    json.field(name, unix_s);
  else
    json.field(name, nullptr);
}

void add_text(json_writer& json, const char* name, const std::string& text) {
  if (text.empty())
    json.field(name, nullptr);
  else
    json.field(name, text);
}

void add_faults(json_writer& json, const std::vector<batch_fault>& faults) {
  if (faults.empty()) {
    json.field("errors", nullptr);
    return;
  }
  json.key("errors").begin_object().field("object", "list").key("data").begin_array();
  for (const auto& fault : faults) {
    json.begin_object().field("code", fault.code).field("message", fault.message);
    add_text(json, "param", fault.param);
    add_time(json, "line", fault.line);
    json.end_object();
  }
  json.end_array().end_object();
}

} // namespace

const char* name_of(batch_status status) {
  return names[static_cast<std::size_t>(status)];
}

std::optional<batch_status> status_named(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<batch_status>(found - names.begin());
}

bool is_final(batch_status status) {
  return status == batch_status::completed || status == batch_status::failed ||
         status == batch_status::expired || status == batch_status::cancelled;
}

void batch::reach(batch_status next) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  status = next;
  reached_unix_s[static_cast<std::size_t>(next)] =
      std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

std::string batch_json(const batch& record) {
  const auto reached = [&](batch_status s) {
    return record.reached_unix_s[static_cast<std::size_t>(s)];
  };
  std::string out;
  json_writer json(out);
  json.begin_object().field("id", record.id).field("object", "batch");
  json.field("endpoint", record.endpoint);
  add_faults(json, record.faults);
  json.field("input_file_id", record.input_file_id);
  json.field("completion_window", record.completion_window).field("status", name_of(record.status));
  add_text(json, "output_file_id", record.output_file_id);
  add_text(json, "error_file_id", record.error_file_id);
  json.field("created_at", reached(batch_status::validating));
  add_time(json, "in_progress_at", reached(batch_status::in_progress));
  json.field("expires_at", record.expires_unix_s);
  add_time(json, "finalizing_at", reached(batch_status::finalizing));
  add_time(json, "completed_at", reached(batch_status::completed));
  add_time(json, "failed_at", reached(batch_status::failed));
  add_time(json, "expired_at", reached(batch_status::expired));
  add_time(json, "cancelling_at", reached(batch_status::cancelling));
  add_time(json, "cancelled_at", reached(batch_status::cancelled));
  json.key("request_counts").begin_object().field("total", record.total);
  json.field("completed", record.completed).field("failed", record.failed).end_object();
  json.field("metadata", record.metadata).end_object();
  return out;
}

std::string file_json(const stored_file& file) {
  std::string out;
  json_writer json(out);
  json.begin_object().field("id", file.id).field("object", "file").field("bytes", file.bytes);
  json.field("created_at", file.created_unix_s).field("filename", file.filename);
  json.field("purpose", file.purpose).field("status", "processed").end_object();
  return out;
}

std::variant<batch_line, batch_fault> parse_batch_line(std::string_view text,
                                                       std::string_view endpoint) {
  auto parsed = parse_json(text);
  if (!parsed.ok()) return batch_fault{"invalid_json_line", parsed.code().message, "", 0};
  const value& line = parsed.value();
  if (line.as_object() == nullptr)
    return batch_fault{"invalid_json_line", "line must be an object, got " + describe(line), "", 0};
  const auto wrong = [&](const char* name, const std::string& rule) {
    const auto* given = line.find(name);
    return batch_fault{"invalid_value",
                       std::string("`") + name + "` must be " + rule + ", got " +
                           (given == nullptr ? "nothing" : describe(*given)),
                       name, 0};
  };
  const auto text_of = [&](const char* name) {
    const auto* member = line.find(name);
    return member == nullptr ? nullptr : member->as_string();
  };
  const auto* id = text_of("custom_id");
  if (id == nullptr || id->empty() || id->size() > 512)
    return wrong("custom_id", "a string of 1 to 512 bytes");
  if (const auto* method = text_of("method"); method == nullptr || *method != "POST")
    return wrong("method", "\"POST\"");
  if (const auto* url = text_of("url"); url == nullptr || *url != endpoint)
    return wrong("url", "the batch's endpoint \"" + std::string(endpoint) + "\"");
  const auto* body = line.find("body");
  if (body == nullptr || body->as_object() == nullptr) return wrong("body", "an object");
  return batch_line{*id, *body};
}

std::optional<std::string> answered_id(std::string_view line) {
  const auto parsed = parse_own_json(line);
  if (!parsed.ok()) return std::nullopt;
  const auto* id = parsed.value().find("custom_id");
  if (id == nullptr || id->as_string() == nullptr) return std::nullopt;
  return *id->as_string();
}

std::string reply_line(const std::string& custom_id, int status, std::string_view body) {
  std::string out;
  json_writer json(out);
  json.begin_object().field("id", make_id("batch_req_")).field("custom_id", custom_id);
  json.key("response").begin_object().field("status_code", status);
  json.field("request_id", make_id("req_")).key("body").raw(body).end_object();
  json.field("error", nullptr).end_object();
  return out += '\n';
}

std::string unanswered_line(const std::string& custom_id, std::string_view code,
                            std::string_view message) {
  std::string out;
  json_writer json(out);
  json.begin_object().field("id", make_id("batch_req_")).field("custom_id", custom_id);
  json.field("response", nullptr).key("error").begin_object();
  json.field("code", code).field("message", message).end_object().end_object();
  return out += '\n';
}

} // namespace twill::net
