// The tables of request fields (operations), compared with the code that parses request bodies; and
// the API documents that are generated from the tables.
#include "net/http/operations.hpp"

#include <map>
#include <string>

#include "net/error_map.hpp"
#include "net/http/docs_page.hpp"
#include "net/http/openapi.hpp"
#include "net/protocol/model_lookup.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

/// The least body that each codec takes.
const std::map<std::string, value_object, std::less<>>& least_bodies() {
  static const auto hello = json(R"([{"role":"user","content":"hello"}])");
  static const std::map<std::string, value_object, std::less<>> bodies{
      {"/v1/chat/completions", {{"messages", hello}}},
      {"/v1/completions", {{"prompt", "hello"}}},
      {"/v1/messages", {{"max_tokens", std::int64_t{4}}, {"messages", hello}}},
      {"/v1/responses", {{"input", "hello"}}},
      {"/api/chat", {{"messages", hello}}},
      {"/api/generate", {{"prompt", "hello"}}},
      {"/", {{"inputs", "hello"}}},
      {"/v1/embeddings", {{"messages", hello}}},
      {"/v1/score", {{"text_1", "hello"}, {"text_2", "hello"}}},
      {"/score", {{"text_1", "hello"}, {"text_2", "hello"}}},
      {"/v1/rerank", {{"query", "hello"}, {"documents", json(R"(["hello"])")}}},
      {"/v2/rerank", {{"query", "hello"}, {"documents", json(R"(["hello"])")}}},
      {"/rerank", {{"query", "hello"}, {"documents", json(R"(["hello"])")}}},
      {"/api/embed", {{"input", "hello"}}},
      {"/api/embeddings", {{"prompt", "hello"}}},
      {"/completion", {{"prompt", "hello"}}},
      {"/completions", {{"prompt", "hello"}}},
      {"/generate", {{"inputs", "hello"}}},
      {"/generate_stream", {{"inputs", "hello"}}}};
  return bodies;
}

/// A field of a route that generates: a member of the body, or of an object in it.
struct described_field {
  codec parse;
  field_row row;
  std::string path;    ///< "options.seed", as errors name it
  value_object others; ///< the least body without the member that the field is in

  /// A body in which the field has this value.
  value with(value given) const {
    auto rest = path;
    for (auto dot = rest.rfind('.'); dot != std::string::npos; dot = rest.rfind('.')) {
      given = value_object{{rest.substr(dot + 1), std::move(given)}};
      rest.resize(dot);
    }
    auto body = others;
    body.emplace_back(rest, std::move(given));
    return body;
  }
};

template <class Check>
void for_each_field(const field_rows& rows, const described_field& in, Check check) {
  for (const auto& row : rows) {
    auto one = in;
    one.row = row;
    if (!in.path.empty()) one.path += '.';
    one.path += row.name;
    if (in.path.empty())
      std::erase_if(one.others, [&](const auto& member) {
        return member.first == row.name || (row.name == "input" && member.first == "messages");
      });
    check(one);
    if (row.members != nullptr) for_each_field(row.members(), one, check);
  }
}

/// Calls `check` with each field that has this use, on each route that generates.
template <class Check>
void for_each_field(field_use use, Check check) {
  std::size_t routes = 0, nested = 0;
  for (const auto& one : operations()) {
    const auto* target = match_endpoint(name_of(one.method), one.path).target;
    REQUIRE(target != nullptr);
    const auto* parse = std::get_if<codec>(&target->action);
    if (parse == nullptr) continue;
    ++routes;
    REQUIRE(one.body != nullptr);
    const auto least = least_bodies().find(one.path);
    INFO(one.path);
    REQUIRE(least != least_bodies().end());
    for_each_field(unique_rows(one.body()), {*parse, {}, {}, least->second},
                   [&](const auto& field) {
                     if (field.row.use != use) return;
                     INFO(field.path);
                     nested += field.path.find('.') != std::string::npos;
                     check(field);
                   });
  }
  CHECK(routes == least_bodies().size());
  CHECK(nested > 0);
}

/// Some value of the schema's type.
value any_value(std::string_view schema) {
  if (schema.find("\"string\"") != std::string_view::npos) return "5m";
  if (schema.find("\"boolean\"") != std::string_view::npos) return true;
  for (const auto* type : {"\"integer\"", "\"number\""})
    if (schema.find(type) != std::string_view::npos) return std::int64_t{1};
  return json(R"({"a":[1]})");
}

bool names(const api_error& error, std::string_view field) {
  return error.param == field || error.param.starts_with(std::string(field) + ".") ||
         error.param.starts_with(std::string(field) + "[");
}

} // namespace

TEST_CASE("Each honoured field is read: a value of a wrong type is refused by its name") {
  const codec_fixture b;
  for_each_field(field_use::honoured, [&](const described_field& field) {
    const bool takes_objects = field.row.schema.find("\"object\"") != std::string_view::npos;
    const auto body = field.with(json(takes_objects ? "5.5" : R"({"no":1})"));
    if (field.path == "model") { // the server reads `model` before the codec runs
      const auto found = find_model(b.engine, body, nullptr);
      REQUIRE(!found.ok());
      CHECK(found.code().param == "model");
      return;
    }
    const auto parsed = field.parse(body, b.context);
    REQUIRE(!parsed.ok());
    INFO(parsed.code().message);
    CHECK(names(parsed.code(), field.path));
    CHECK(map_error(parsed.code()).http_status == 400);
  });
}

TEST_CASE("Each refused field is refused by its name, unless it is off") {
  const codec_fixture b;
  for_each_field(field_use::refused, [&](const described_field& field) {
    const auto parsed = field.parse(field.with("on"), b.context);
    REQUIRE(!parsed.ok());
    INFO(parsed.code().message);
    CHECK(names(parsed.code(), field.path));
    CHECK(field.parse(field.with(value()), b.context).ok());
  });
}

TEST_CASE("A field without effect may have any value") {
  const codec_fixture b;
  for_each_field(field_use::no_effect, [&](const described_field& field) {
    CHECK(field.parse(field.with(any_value(field.row.schema)), b.context).ok());
  });
}

TEST_CASE("A required field is missed by its name") {
  const codec_fixture b;
  for_each_field(field_use::honoured, [&](const described_field& field) {
    if (!field.row.required) return;
    const auto parsed = field.parse(value(field.others), b.context);
    REQUIRE(!parsed.ok());
    CHECK(parsed.code().param == field.path);
  });
}

TEST_CASE("The OpenAPI document is JSON, has each route, and its references lead somewhere") {
  const auto document = json(openapi_text());
  CHECK(at(document, "openapi") == value("3.1.1"));
  std::size_t described = 0;
  for (const auto& [path, methods] : *at(document, "paths").as_object())
    for (const auto& [method, one] : *methods.as_object()) {
      INFO(method << " " << path);
      ++described;
      const auto& responses = at(one, "responses");
      CHECK((responses.find("200") != nullptr || responses.find("426") != nullptr ||
             path.starts_with("/api/")));
      for (const auto& [status, reply] : *responses.as_object()) {
        if (status == "200") continue;
        const auto& reference = at(reply, "content", "application/json", "schema", "$ref");
        const std::string before = "#/components/schemas/";
        REQUIRE(reference.as_string()->starts_with(before));
        const auto name = reference.as_string()->substr(before.size());
        CHECK(at(document, "components", "schemas").find(name) != nullptr);
      }
      if (path.find('{') == std::string::npos) continue;
      CHECK(at(one, "parameters", 0, "in") == value("path"));
      CHECK(path.find("{" + *at(one, "parameters", 0, "name").as_string() + "}") !=
            std::string::npos);
    }
  CHECK(described == operations().size());
  const auto& chat = at(document, "paths", "/v1/chat/completions", "post", "requestBody", "content",
                        "application/json", "schema");
  CHECK(at(chat, "required") == json(R"(["messages"])"));
  CHECK(at(chat, "properties", "temperature", "maximum") == json("100"));
  CHECK(at(chat, "properties", "suffix", "x-twill") == value("refused"));
}

TEST_CASE("Every link inside /routes to /docs leads to a heading there") {
  const auto routes = routes_page(), docs = docs_page();
  std::size_t links = 0;
  const std::string mark = "href=\"docs#";
  for (auto at = routes.find(mark); at != std::string::npos; at = routes.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    const auto anchor = routes.substr(begin, routes.find('"', begin) - begin);
    INFO(anchor);
    CHECK(docs.find("id=\"" + anchor + "\"") != std::string::npos);
    ++links;
  }
  CHECK(links > 10);
}
