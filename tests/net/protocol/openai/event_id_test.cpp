// Ids of events, and which protocol an id belongs to.
#include "net/protocol/openai/event_id.hpp"
#include "net/stored/stored_api.hpp"
#include "tests/catch.hpp"

using namespace twill::net;

TEST_CASE("The id of an event names its response and its number, and nothing else is one") {
  const auto place = read_event_id(event_id("cmpl-a.b_c:d", 17));
  REQUIRE(place.has_value());
  CHECK(place->id == "cmpl-a.b_c:d");
  CHECK(place->number == 17);
  for (const auto* bad : {"", ":", ":3", "cmpl-1", "cmpl-1:", "cmpl-1:-1", "cmpl-1:+1", "cmpl-1:1x",
                          "cmpl-1: 1", "cmpl-1:9223372036854775808"})
    CHECK_FALSE(read_event_id(bad).has_value());
  CHECK(read_event_id("cmpl-1:9223372036854775807").has_value());
}

TEST_CASE("An id shows how its response was requested and is read on") {
  CHECK(api_of("resp_1") == stored_api::responses);
  CHECK(api_of("chatcmpl-1") == stored_api::chat);
  CHECK(api_of("cmpl-1") == stored_api::completions);
  CHECK(api_of("strm_1") == stored_api::stream);
  CHECK(api_of("") == stored_api::responses);
  for (const auto api :
       {stored_api::responses, stored_api::chat, stored_api::completions, stored_api::stream})
    CHECK(api_of(id_prefix_of(api)) == api);
  CHECK(how_to_read_on("chatcmpl-1") ==
        "read on with GET /v1/chat/completions/chatcmpl-1?stream=true&starting_after=NUMBER");
  CHECK(how_to_read_on("strm_1").find(R"("stored":"strm_1")") != std::string::npos);
}
