#include "net/http/openapi.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "net/protocol/api_style.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {
namespace {

constexpr std::string_view about =
    "A language model server. In a JSON body a member that is null counts as absent, and one that "
    "is not listed is ignored. `x-twill` says of each member whether it is honoured, has no "
    "effect, or is refused by name; a value that turns it off is not refused.";

bool names_one(const operation& described) {
  return described.path.find('*') != std::string_view::npos;
}

bool generates(const endpoint& target) {
  return std::holds_alternative<codec>(target.action);
}

const endpoint& endpoint_of(const operation& described) {
  const auto all = endpoints();
  return *std::find_if(all.begin(), all.end(), [&](const endpoint& one) {
    return one.method == described.method && one.path == described.path;
  });
}

std::string_view style_name(api_style style) {
  switch (style) {
  case api_style::openai:
    return "Error";
  case api_style::anthropic:
    return "AnthropicError";
  case api_style::ollama:
    return "OllamaError";
  case api_style::tgi:
    return "TgiError";
  case api_style::llamacpp:
    return "LlamaCppError";
  }
  return "Error";
}

/// Returns the JSON Schema of an error's body.
std::string_view style_schema(api_style style) {
  switch (style) {
  case api_style::openai:
    return R"({"type":"object","required":["error"],"properties":{"error":{"type":"object",)"
           R"("required":["message","type","code"],"properties":{"message":{"type":"string"},)"
           R"("type":{"type":"string"},"param":{"type":["string","null"]},"code":{"type":"string"}}}}})";
  case api_style::anthropic:
    return R"({"type":"object","required":["type","error"],"properties":{"type":{"const":"error"},)"
           R"("error":{"type":"object","required":["type","message"],"properties":{"type":)"
           R"({"type":"string"},"message":{"type":"string"}}}}})";
  case api_style::ollama:
    return R"({"type":"object","required":["error"],"properties":{"error":{"type":"string"}}})";
  case api_style::tgi:
    return R"({"type":"object","required":["error","error_type"],"properties":{"error":)"
           R"({"type":"string"},"error_type":{"type":"string"}}})";
  case api_style::llamacpp:
    return R"({"type":"object","required":["error"],"properties":{"error":{"type":"object",)"
           R"("required":["code","message","type"],"properties":{"code":{"type":"integer"},)"
           R"("message":{"type":"string"},"type":{"type":"string"}}}}})";
  }
  return "{}";
}

void add_content(json_writer& json, std::string_view content_type, std::string_view schema) {
  json.key(content_type).begin_object().key("schema").raw(schema).end_object();
}

void add_success(json_writer& json, const operation& described) {
  json.begin_object().field("description", "What was asked for.").key("content").begin_object();
  switch (described.reply) {
  case reply_form::json_or_events:
    add_content(json, "text/event-stream", "{}");
    [[fallthrough]];
  case reply_form::json:
    add_content(json, "application/json", R"({"type":["object","array"]})");
    break;
  case reply_form::events:
    add_content(json, "text/event-stream", "{}");
    break;
  case reply_form::json_or_lines:
    add_content(json, "application/x-ndjson", "{}");
    add_content(json, "application/json", R"({"type":["object","array"]})");
    break;
  case reply_form::html:
    add_content(json, "text/html", R"({"type":"string"})");
    break;
  case reply_form::text:
    add_content(json, "text/plain", R"({"type":"string"})");
    break;
  case reply_form::bytes:
    add_content(json, "*/*", "{}");
    break;
  case reply_form::websocket:
  case reply_form::refused:
    break;
  }
  json.end_object().end_object();
}

void add_responses(json_writer& json, const operation& described) {
  const auto style = style_of(described.path, false);
  json.key("responses").begin_object();
  for (const int status : statuses_of(described)) {
    json.key(std::to_string(status));
    if (status == 200) {
      add_success(json, described);
      continue;
    }
    json.begin_object().field("description", "Refused or failed; the body says why.");
    json.key("content").begin_object();
    add_content(json, "application/json",
                R"({"$ref":"#/components/schemas/)" + std::string(style_name(style)) + "\"}");
    json.end_object().end_object();
  }
  json.end_object();
}

void add_properties(json_writer& json, const field_rows& rows);

void add_property(json_writer& json, const field_row& row) {
  json.key(row.name).begin_object();
  if (row.use == field_use::refused)
    json.field("type", "null"); // null counts as absent
  else if (!row.schema.empty())
    json.raw(row.schema);
  if (row.members != nullptr) add_properties(json, row.members());
  json.field("description", row.note).field("x-twill", word_of(row.use)).end_object();
}

void add_properties(json_writer& json, const field_rows& rows) {
  json.key("properties").begin_object();
  for (const auto& row : rows)
    add_property(json, row);
  json.end_object();
}

void add_body(json_writer& json, const operation& described) {
  if (described.multipart) {
    json.key("requestBody").begin_object().field("required", true).key("content").begin_object();
    add_content(json, "multipart/form-data",
                R"({"type":"object","required":["purpose","file"],"properties":{"purpose":)"
                R"({"const":"batch"},"file":{"type":"string","format":"binary"}}})");
    json.end_object().end_object();
    return;
  }
  if (described.body == nullptr) return;
  json.key("requestBody").begin_object().field("required", true).key("content").begin_object();
  json.key("application/json").begin_object().key("schema").begin_object();
  json.field("type", "object");
  const auto rows = unique_rows(described.body());
  add_properties(json, rows);
  if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.required; })) {
    json.key("required").begin_array();
    for (const auto& row : rows)
      if (row.required) json.add(row.name);
    json.end_array();
  }
  json.end_object().end_object().end_object().end_object();
}

void add_parameters(json_writer& json, const operation& described) {
  const auto path = path_with_names(described.path);
  const auto open = path.find('{');
  if (open == std::string::npos && described.query.empty()) return;
  json.key("parameters").begin_array();
  if (open != std::string::npos) {
    const auto name = path.substr(open + 1, path.find('}') - open - 1);
    json.begin_object().field("name", name).field("in", "path").field("required", true);
    json.key("schema").raw(R"({"type":"string","minLength":1})").end_object();
  }
  for (const auto& row : described.query) {
    json.begin_object().field("name", row.name).field("in", "query");
    json.field("description", row.note);
    json.key("schema").raw("{" + std::string(row.schema) + "}").end_object();
  }
  json.end_array();
}

void add_operation(json_writer& json, const operation& described) {
  json.begin_object().field("summary", described.summary);
  json.key("tags").begin_array().add(described.section).end_array();
  if (endpoint_of(described).key == key_rule::open) json.key("security").raw("[]");
  add_parameters(json, described);
  add_body(json, described);
  add_responses(json, described);
  json.end_object();
}

std::string lower_name(http_method method) {
  std::string name(name_of(method));
  for (auto& c : name)
    c = static_cast<char>(c - 'A' + 'a');
  return name;
}

} // namespace

std::vector<int> statuses_of(const operation& described) {
  const auto& target = endpoint_of(described);
  // Statuses of errors that are found in the head or the body before a handler runs.
  std::set<int> statuses{400, 403, 408, 413, 415, 421, 429, 431, 503};
  statuses.insert(described.reply == reply_form::websocket ? 426
                  : described.reply == reply_form::refused ? 403
                                                           : 200);
  if (target.key == key_rule::required) statuses.insert(401);
  if (names_one(described)) statuses.insert({404, 409});
  if (!described.query.empty()) statuses.insert(404); // a model or entry in the query may not exist
  if (described.body != nullptr) statuses.insert({404, 500});
  if (generates(target) || described.multipart || described.body != nullptr)
    statuses.insert({409, 507});
  if (style_of(described.path, false) == api_style::tgi) statuses.insert({422, 424});
  return {statuses.begin(), statuses.end()};
}

std::string_view word_of(field_use use) {
  switch (use) {
  case field_use::honoured:
    return "honoured";
  case field_use::no_effect:
    return "no effect";
  case field_use::refused:
    return "refused";
  }
  return {};
}

std::string openapi_text() {
  std::string out;
  json_writer json(out);
  json.begin_object().field("openapi", "3.1.1").key("info").begin_object();
  json.field("title", "twill").field("version", TWILL_VERSION).field("description", about);
  json.end_object();
  json.key("security").raw(R"([{"bearer":[]},{"header":[]},{}])");
  std::map<std::string, std::vector<const operation*>> by_path;
  for (const auto& one : operations())
    by_path[path_with_names(one.path)].push_back(&one);
  json.key("paths").begin_object();
  for (const auto& [path, described] : by_path) {
    json.key(path).begin_object();
    for (const auto* one : described) {
      json.key(lower_name(one->method));
      add_operation(json, *one);
    }
    json.end_object();
  }
  json.end_object().key("components").begin_object().key("securitySchemes").begin_object();
  json.key("bearer").raw(R"({"type":"http","scheme":"bearer"})");
  json.key("header").raw(R"({"type":"apiKey","in":"header","name":"X-Api-Key"})");
  json.end_object().key("schemas").begin_object();
  for (const auto style : {api_style::openai, api_style::anthropic, api_style::ollama,
                           api_style::tgi, api_style::llamacpp})
    json.key(style_name(style)).raw(style_schema(style));
  json.end_object().end_object().end_object();
  return out;
}

} // namespace twill::net
