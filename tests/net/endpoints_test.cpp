// The endpoint table: paths, methods, wildcards, and how the router and batches use the table.
#include "net/endpoints.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include "net/http/docs_page.hpp"
#include "net/http/operations.hpp"
#include "net/http/page_files.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::net;

TEST_CASE("An endpoint is found by its path and method") {
  const auto match = match_endpoint("POST", "/v1/completions");
  REQUIRE(match.target != nullptr);
  CHECK(std::holds_alternative<codec>(match.target->action));
  CHECK(match.allow == "POST, OPTIONS");
  CHECK(match_endpoint("GET", "/v1/completions").target == nullptr);
  CHECK(match_endpoint("GET", "/v1/responses").target !=
        match_endpoint("POST", "/v1/responses").target);
  CHECK(match_endpoint("HEAD", "/health").target == match_endpoint("GET", "/health").target);
  CHECK(match_endpoint("GET", "/tokenizer_info").target != nullptr);
  CHECK(match_endpoint("PATCH", "/health").target == nullptr);
  CHECK(match_endpoint("GET", "/nope").allow.empty());
}

TEST_CASE("A star stands for one segment, two stars for all the rest") {
  CHECK(match_endpoint("GET", "/v1/files/a").wildcard == "a");
  CHECK(match_endpoint("GET", "/v1/files/a/content").wildcard == "a");
  CHECK(match_endpoint("GET", "/v1/files/a/b/content").target == nullptr);
  CHECK(match_endpoint("GET", "/v1/files/").target == match_endpoint("GET", "/v1/files").target);
  CHECK(match_endpoint("GET", "/v1/models/org/name").wildcard == "org/name");
  CHECK(match_endpoint("GET", "/v1/models/").target == match_endpoint("GET", "/v1/models").target);
  const auto readiness = match_endpoint("GET", "/v2/models/org/name/ready");
  CHECK(readiness.wildcard == "org/name");
  CHECK(readiness.target != match_endpoint("GET", "/v2/models/org/name").target);
  CHECK(readiness.allow == "GET, HEAD, OPTIONS");
}

TEST_CASE("What a batch may name has a codec and takes full bodies") {
  config::server_options limits;
  for (const auto& row : endpoints()) {
    CHECK((find_batch_codec(row.path) != nullptr || !row.batch));
    if (!row.batch) continue;
    CHECK(std::holds_alternative<codec>(row.action));
    CHECK(max_body_bytes(row, limits) == limits.max_body_bytes);
  }
  CHECK(batch_paths() == "/v1/completions, /v1/chat/completions, /v1/embeddings or /v1/responses");
  CHECK(find_batch_codec("/tokenize") == nullptr);
}

TEST_CASE("Only what shows nothing about clients is served without a key") {
  for (const auto& row : endpoints()) {
    const bool reads = row.method == http_method::get;
    const bool open = (row.path == "/" && reads) || row.path == "/page/*" ||
                      row.path == "/routes" || row.path == "/docs" || row.path == "/openapi.json" ||
                      row.path == "/api/version" || row.path == "/health" || row.path == "/ready" ||
                      row.path == "/metrics" || row.path == "/version" || row.path == "/load" ||
                      row.path == "/get_load" || row.path == "/is_sleeping" ||
                      row.path == "/kv_event_sources" || row.path == "/server_info" ||
                      row.path == "/get_server_info" || row.path == "/model_info" ||
                      row.path == "/get_model_info" || row.path == "/ping" || row.path == "/v2" ||
                      row.path == "/v2/health/live" || row.path == "/v2/health/ready";
    CHECK((row.key == key_rule::open) == open);
  }
}

TEST_CASE("Every endpoint is described once, and nothing else is") {
  std::multiset<std::string> served, described;
  for (const auto& row : endpoints())
    served.insert(std::string(name_of(row.method)) + " " + std::string(row.path));
  for (const auto& one : operations())
    described.insert(std::string(name_of(one.method)) + " " + std::string(one.path));
  CHECK(served == described);
}

TEST_CASE("The page at /routes names every route") {
  const auto page = routes_page();
  for (const auto& row : endpoints()) {
    const auto name = std::string(name_of(row.method)) + " " + path_with_names(row.path);
    INFO(name);
    CHECK(page.find(">" + name + "<") != std::string::npos);
  }
}

TEST_CASE("Every guide that the page at /routes leads to is served") {
  const auto page = routes_page();
  const std::regex link("href=\"page/([^\"]+\\.md)\"");
  std::set<std::string> names;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at)
    names.insert((*at)[1].str());
  CHECK(names.size() == 10);
  for (const auto& name : names) {
    const auto files = page_files();
    const auto found = std::find_if(files.begin(), files.end(),
                                    [&](const auto& file) { return file.name == name; });
    INFO(name);
    REQUIRE(found != files.end());
    CHECK(found->content_type == "text/plain; charset=utf-8");
    CHECK(found->bytes.substr(0, 2) == "# ");
  }
}
