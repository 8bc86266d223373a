#include "config/base/ledger.hpp"

#include "tests/catch.hpp"

using twill::ledger;
using texts = std::vector<std::string>;

TEST_CASE("ledger: what is taken and what holders have add up") {
  ledger all;
  CHECK(all.is_at_rest());
  CHECK(all.faults().empty());
  all.exists("request 1");
  all.exists("request 2");
  CHECK_FALSE(all.is_at_rest());
  all.taken("blocks", 5);
  all.held("blocks", "request 1", 2);
  all.held("blocks", "request 2", 2);
  CHECK(all.faults() ==
        texts{"blocks: 5 are taken, and their holders have: request 1 2, request 2 2"});
  all.held("blocks", "request 2");
  CHECK(all.faults().empty());
}

TEST_CASE("ledger: what nobody holds, and who does not exist, are faults") {
  ledger all;
  all.taken("bytes", 4);
  CHECK(all.faults() == texts{"bytes: 4 are taken, and nobody holds any"});
  all.held("bytes", "request 9", 4);
  CHECK(all.faults() == texts{"bytes: 4 are held by request 9, which does not exist"});
  all.exists("request 9");
  CHECK(all.faults().empty());
  all.held("bytes", "request 9", -5);
  CHECK(all.faults() == texts{"bytes: request 9 holds -1",
                              "bytes: 4 are taken, and their holders have: request 9 -1"});
}

TEST_CASE("ledger: who stays may hold something at rest") {
  ledger all;
  all.exists("the cache", true);
  all.taken("blocks", 3);
  all.held("blocks", "the cache", 3);
  CHECK(all.is_at_rest());
  CHECK(all.faults().empty());
}

TEST_CASE("ledger: parts are added under names of their own") {
  ledger part;
  part.exists("request 1");
  part.exists("the cache", true);
  part.taken("blocks", 3);
  part.held("blocks", "the cache", 1);
  part.held("blocks", "request 1", 2);
  ledger all;
  all.add(part, "a: ");
  CHECK_FALSE(all.is_at_rest());
  CHECK(all.faults().empty());
  CHECK(all.accounts().at("a: blocks").holders.at("a: request 1") == 2);
  all.add(part, "b: ");
  CHECK(all.accounts().size() == 2);
  CHECK(all.faults().empty());
}

TEST_CASE("ledger: what all parts count together keeps its name") {
  ledger part;
  part.exists("request 1");
  part.held("tokens", "request 1", 2);
  part.held("blocks", "request 1", 3);
  part.taken("blocks", 3);
  ledger all;
  all.taken("tokens", 4);
  all.add(part, "a: ", "tokens");
  CHECK(all.faults().size() == 1);
  all.add(part, "b: ", "tokens");
  CHECK(all.faults().empty());
  CHECK(all.accounts().at("tokens").holders.at("b: request 1") == 2);
  CHECK(all.accounts().at("b: blocks").taken == 3);
}
