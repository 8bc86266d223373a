// Ids that contain the name of the server that made them: which kinds of ids contain it, and the
// error message for an id of an unknown server.
#include "net/protocol/json/json_writer.hpp"
#include "net/random_id.hpp"
#include "net/server_name.hpp"
#include "tests/catch.hpp"

using namespace twill::net;

namespace {

const std::string digits = "0123456789abcdef01234567";
const std::string longest_name(32, 'n');

} // namespace

TEST_CASE("Ids of every server are recognised by their format") {
  for (const auto kind : {response_ids, file_ids, batch_ids})
    for (const auto& name : {std::string(), std::string("a1"), std::string("A-z-"), longest_name}) {
      const auto id = make_id(kind.prefix, name);
      CHECK(is_id_of(kind, id));
      CHECK(server_named_in(kind, id) == name);
    }
}

TEST_CASE("Texts of another format are no ids, and name no server") {
  const std::vector<std::string> others{
      "",
      "file-",
      "file-" + digits.substr(1),
      "file-" + digits + "0",
      "file-." + digits,
      "file-a." + digits + ".json",
      "file-a.b." + digits,
      "file-a.." + digits,
      "file-a_b." + digits,
      "file-a/b." + digits,
      "file-\u00e9." + digits,
      "file-" + longest_name + "n." + digits,
      "file-a." + std::string(24, 'A'),
      "file-a." + std::string(23, '0') + "\n",
      "file-a" + digits,
      "FILE-a." + digits,
      " file-a." + digits,
      "resp_a." + digits,
      "file-" + std::string(1 << 20, '.') + digits,
      std::string("file-a\0b.", 9) + digits,
  };
  for (const auto& id : others) {
    INFO(id.substr(0, 100));
    CHECK_FALSE(is_id_of(file_ids, id));
    CHECK(server_named_in(file_ids, id).empty());
    CHECK(describe_absent(file_ids, id, "", "HINT") ==
          "there is no file " + describe(twill::value(id), 96) + "; HINT");
    CHECK(describe_unknown_value(file_ids, id, "") == describe(twill::value(id), 96));
    CHECK(describe_absent(file_ids, id, "b2", "HINT").ends_with(" on this server, \"b2\"; HINT"));
  }
}

TEST_CASE("What is said of an unknown id names this server, and the one in the id") {
  const auto id = "resp_a1." + digits;
  const auto said = [&](std::string_view own) {
    return describe_absent(response_ids, id, own, "it is gone");
  };
  const auto begin = "there is no stored response \"" + id + "\" on this server, ";
  const std::string end = ": the id names the server \"a1\"; send the request there";
  CHECK(said("b2") == begin + "\"b2\"" + end);
  CHECK(said("") == begin + "which has no name (`server.name`)" + end);
  CHECK(said("a1") == begin + "\"a1\"; it is gone");
  CHECK(said("A1") == begin + "\"A1\"" + end); // names differ by case
  CHECK(
      describe_unknown_value(response_ids, id, "b2") ==
      "\"" + id +
          "\"; this server is \"b2\", and the id names the server \"a1\": send the request there");
  CHECK(describe_unknown_value(response_ids, id, "") ==
        "\"" + id +
            "\"; this server has no name (`server.name`), and the id names the server \"a1\": send "
            "the request there");
  CHECK(describe_unknown_value(response_ids, id, "a1") == "\"" + id + "\"; this server is \"a1\"");
  const auto unnamed = "resp_" + digits;
  CHECK(describe_absent(response_ids, unnamed, "", "it is gone") ==
        "there is no stored response \"" + unnamed + "\"; it is gone");
  CHECK(describe_absent(response_ids, unnamed, "b2", "it is gone") ==
        "there is no stored response \"" + unnamed + "\" on this server, \"b2\"; it is gone");
  CHECK(describe_unknown_value(response_ids, unnamed, "") == "\"" + unnamed + "\"");
}

TEST_CASE("An id with the longest name is shown whole, a longer text is cut") {
  const auto id = make_id("batch_", longest_name);
  CHECK(describe_absent(batch_ids, id, "", "").find('"' + id + '"') != std::string::npos);
  CHECK(describe_absent(batch_ids, std::string(1 << 20, 'x'), "", "").size() < 200);
}
