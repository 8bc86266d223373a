#include "tools/twill/conversation.hpp"

#include <boost/json/parse.hpp>

#include <chrono>
#include <csignal>
#include <mutex>

#include "tests/catch.hpp"
#include "tests/tools/fake_server.hpp"
#include "tools/twill/interrupt.hpp"

using namespace twill::tools;
using namespace twill::tests;
namespace json = boost::json;

namespace {

void reply(web_socket& socket, const std::string& id, const std::vector<std::string>& deltas) {
  write_text(socket, R"({"type":"response.created","response":{"id":")" + id + R"("}})");
  for (const auto& delta : deltas)
    write_text(socket, R"({"type":"response.output_text.delta","delta":")" + delta + R"("})");
  write_text(socket, R"({"type":"response.completed","response":{"id":")" + id +
                         R"(","usage":{"input_tokens":7,"output_tokens":2}}})");
}

chat_flags flags_for(const fake_server& server) {
  chat_flags flags;
  flags.server.url = server.url();
  flags.system = "be brief";
  flags.sampling.temperature = 0;
  flags.sampling.max_tokens = 5;
  return flags;
}

void ignore_text(std::string_view) {}

} // namespace

TEST_CASE("a second turn names the first response and sends only what is new", "[tools]") {
  std::vector<json::value> requests;
  {
    fake_server server({[&](web_socket& socket) {
      requests.push_back(json::parse(read_text(socket)));
      reply(socket, "resp_1", {"he", "llo"});
      requests.push_back(json::parse(read_text(socket)));
      reply(socket, "resp_2", {"bye"});
      read_text(socket);
    }});
    conversation talk(flags_for(server));
    std::string streamed;
    const auto first = talk.say("hi", [&](std::string_view delta) { streamed += delta; });
    CHECK(first.text == "hello");
    CHECK(streamed == "hello");
    CHECK(first.input_tokens == 7);
    CHECK(first.output_tokens == 2);
    CHECK(talk.say("more", ignore_text).text == "bye");
  }
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].at("instructions") == "be brief");
  CHECK(requests[0].at("temperature") == 0.0);
  CHECK(requests[0].at("max_output_tokens") == 5);
  CHECK_FALSE(requests[0].as_object().contains("previous_response_id"));
  CHECK(requests[1].at("previous_response_id") == "resp_1");
  CHECK(requests[1].at("input").as_array().size() == 1);
}

TEST_CASE("after a lost connection the whole history is sent", "[tools]") {
  json::value second;
  {
    fake_server server({[&](web_socket& socket) {
                          read_text(socket);
                          reply(socket, "resp_1", {"one"});
                          read_text(socket); // then closes the connection
                        },
                        [&](web_socket& socket) {
                          second = json::parse(read_text(socket));
                          reply(socket, "resp_9", {"two"});
                          read_text(socket);
                        }});
    conversation talk(flags_for(server));
    talk.say("a", ignore_text);
    CHECK_THROWS_AS(talk.say("b", ignore_text), client_error);
    CHECK(talk.say("c", ignore_text).text == "two");
  }
  const auto& input = second.at("input").as_array();
  REQUIRE(input.size() == 3);
  CHECK(input[0].at("content") == "a");
  CHECK(input[1].at("role") == "assistant");
  CHECK(input[1].at("content") == "one");
  CHECK(input[2].at("content") == "c");
  CHECK_FALSE(second.as_object().contains("previous_response_id"));
}

TEST_CASE("an error of the daemon is thrown in its own words", "[tools]") {
  fake_server server({[&](web_socket& socket) {
    read_text(socket);
    write_text(socket, R"({"type":"error","status":400,"error":{"message":"`x` must be y"}})");
    read_text(socket);
  }});
  conversation talk(flags_for(server));
  CHECK_THROWS_WITH(talk.say("hi", ignore_text), "`x` must be y");
}

TEST_CASE("an interrupt cancels the reply", "[tools]") {
  std::string cancel;
  {
    fake_server server({[&](web_socket& socket) {
      read_text(socket);
      write_text(socket, R"({"type":"response.output_text.delta","delta":"so"})");
      cancel = read_text(socket);
      write_text(socket, R"({"type":"response.incomplete","response":{"id":"resp_1"}})");
      read_text(socket);
    }});
    count_interrupts();
    clear_interrupts();
    conversation talk(flags_for(server));
    const auto reply = talk.say("hi", [](std::string_view) { std::raise(SIGINT); });
    CHECK(reply.cancelled);
    CHECK(reply.text == "so");
    clear_interrupts();
  }
  CHECK(cancel == R"({"type":"response.cancel"})");
}
