#include "tools/common/endpoint.hpp"

#include "tests/catch.hpp"
#include "tests/tools/fake_server.hpp"

using namespace twill::tools;
using namespace twill::tests;

TEST_CASE("addresses of a daemon are read in every usual form", "[tools]") {
  CHECK(parse_endpoint("http://127.0.0.1:8080").authority() == "127.0.0.1:8080");
  CHECK(parse_endpoint("ws://host:1/").authority() == "host:1");
  CHECK(parse_endpoint("host:1").port == "1");
  CHECK(parse_endpoint("http://host").port == "80");
  CHECK(parse_endpoint("http://host:1/v1").prefix.empty());
  CHECK(parse_endpoint("http://host:1/a/v1/").prefix == "/a");
  CHECK(parse_endpoint("http://[::1]:9").host == "::1");
  CHECK(parse_endpoint("http://[::1]:9").authority() == "[::1]:9");
  CHECK(parse_endpoint("[::1]").port == "80");
  CHECK(parse_endpoint("https://host").port == "443");
  CHECK(parse_endpoint("wss://host:1").tls);
  CHECK(parse_endpoint("unix:/run/t.sock").unix_path == "/run/t.sock");
  CHECK(parse_endpoint("unix:/run/t.sock").authority() == "localhost");
}

TEST_CASE("what is no address of a daemon is refused by name", "[tools]") {
  for (const char* url : {"", "http://", "ftp://host", "unix:", "unix:x", "http://host:",
                          "http://host:80x", "ho st:1", "http://me@host:1", "http://host:123456"})
    CHECK(words_of_error([&] { parse_endpoint(url); }).rfind("`--url` must be", 0) == 0);
}
