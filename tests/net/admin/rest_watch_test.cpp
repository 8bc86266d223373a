#include "net/admin/rest_watch.hpp"

#include "tests/catch.hpp"

using twill::ledger;
using twill::net::rest_watch;
using texts = std::vector<std::string>;

namespace {
ledger with(std::int64_t blocks, bool request_runs = false) {
  ledger all;
  if (request_runs) all.exists("request 1");
  all.taken("blocks", blocks);
  return all;
}
} // namespace

TEST_CASE("rest watch: a fault counts when it is seen twice without a request between") {
  rest_watch watch;
  CHECK(watch.look(with(0)).empty());
  CHECK(watch.look(with(3)).empty());
  CHECK(watch.look(with(3)) == texts{"blocks: 3 are taken, and nobody holds any"});
  CHECK(watch.look(with(3)).empty()); // a fault is reported once
}

TEST_CASE("rest watch: what is given back late, and what requests hold, is no fault") {
  rest_watch watch;
  CHECK(watch.look(with(3)).empty());
  CHECK(watch.look(with(2)).empty());
  CHECK(watch.look(with(1)).empty());
  CHECK(watch.look(with(0)).empty());
  for (int i = 0; i < 3; ++i)
    CHECK(watch.look(with(3, true)).empty());
  CHECK(watch.look(with(3)).empty());
  CHECK(watch.look(with(0)).empty());
}

TEST_CASE("rest watch: a fault counts whatever else changes between the looks") {
  rest_watch watch;
  for (std::int64_t idle = 1; idle < 4; ++idle) {
    ledger now = with(3);
    now.exists("idle sockets", true);
    now.taken("sockets", idle);
    now.held("sockets", "idle sockets", idle);
    CHECK(watch.look(now).size() == (idle == 2 ? 1 : 0));
  }
}

TEST_CASE("rest watch: a fault is reported again after a request") {
  rest_watch watch;
  watch.look(with(3));
  CHECK(watch.look(with(3)).size() == 1);
  watch.look(with(3, true));
  watch.look(with(3));
  CHECK(watch.look(with(3)).size() == 1);
}
