// The endpoint table: paths, methods, wildcards, and what the router and batches read of it.
#include "net/endpoints.hpp"
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
}

TEST_CASE("What a batch may name has a codec and takes full bodies") {
  config::server_options limits;
  for (const auto& row : endpoints()) {
    CHECK((find_batch_codec(row.path) != nullptr || !row.batch));
    if (!row.batch) continue;
    CHECK(std::holds_alternative<codec>(row.action));
    CHECK(max_body_bytes(row, limits) == limits.max_body_bytes);
  }
  CHECK(batch_paths() == "/v1/completions, /v1/chat/completions or /v1/responses");
  CHECK(find_batch_codec("/tokenize") == nullptr);
}

TEST_CASE("Only what tells nothing about clients is served without a key") {
  for (const auto& row : endpoints()) {
    const bool open = row.path == "/" || row.path == "/page/*" || row.path == "/routes" ||
                      row.path == "/health" || row.path == "/ready" || row.path == "/metrics" ||
                      row.path == "/version";
    CHECK((row.key == key_rule::open) == open);
  }
}
