// Ids that carry the name of a server: which ids those are.
#include "net/random_id.hpp"
#include "net/server_name.hpp"
#include "tests/catch.hpp"

using namespace twill::net;

namespace {

const std::string digits = "0123456789abcdef01234567";
const std::string longest_name(32, 'n');

} // namespace

TEST_CASE("Ids of every server are known by their form") {
  for (const auto kind : {response_ids, file_ids, batch_ids})
    for (const auto& name : {std::string(), std::string("a1"), std::string("A-z-"), longest_name})
      CHECK(is_id_of(kind, make_id(kind.prefix, name)));
}

TEST_CASE("Texts of another form are no ids") {
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
  }
}
