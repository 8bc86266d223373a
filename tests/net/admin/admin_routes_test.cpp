// What the administrative routes show of the engine, and that only administrators may read them.
#include <string>

#include "net/api_keys.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::testing;

namespace {

config::options with_boss() {
  config::options options;
  options.server.admin_listen = "127.0.0.1:0";
  options.tenants = {{"boss", {net::digest_of("b")}}, {"guest", {net::digest_of("g")}}};
  options.tenants[0].admin = true;
  return options;
}

const std::string boss = "Authorization: Bearer b\r\n", guest = "Authorization: Bearer g\r\n";

} // namespace

TEST_CASE("The state shows administrators models, tenants, sequences and mailboxes") {
  running_server s({}, with_boss());
  s.engine.count = [](actors::engine_stats& to) {
    to.requests_waiting = 4;
    to.kv_host_blocks = 5;
    to.kv_disk_blocks = 6;
    to.device_memory_reserved_bytes = 7000;
    to.device_outside_bytes = 300;
    to.device_memory_touched_bytes = 2001;
    to.device_weights_bytes = 2000;
    to.device_is_host = true;
    to.kv_block_bytes = 40;
    to.prompt_tokens = 8;
    to.generation_tokens = 9;
    to.steps = 10;
    to.preemptions = 11;
    to.executor_restarts = 12;
  };
  actors::scheduler_snapshot snapshot;
  snapshot.model = "m";
  snapshot.total_blocks = 20;
  snapshot.used_blocks = 12;
  snapshot.free_blocks = 8;
  snapshot.cached = "0-2";
  snapshot.pinned_by_child = "3";
  snapshot.sequences.resize(3);
  snapshot.sequences[0] = {1, 2, 3, "guest", "mine", true, false, 30, 40, "4-6", 3};
  snapshot.sequences[1].paused = snapshot.sequences[1].running = true;
  snapshot.orphans.resize(1);
  snapshot.orphans[0].blocks = "9";
  s.engine.snapshots = {snapshot};
  actors::tenant_stats one;
  one.tenant = "guest";
  one.model = "m";
  one.requests_waiting = 1;
  one.requests_running = 2;
  one.prompt_tokens = 3;
  one.cached_prompt_tokens = 4;
  one.generation_tokens = 5;
  one.finished = {{"stop", 6}};
  s.engine.set_tenants({one});

  client outside(s.port());
  CHECK(outside.get("/admin/state", boss).status == 404);
  client c(s.admin_port());
  CHECK(c.get("/admin/state").status == 401);
  CHECK(c.get("/admin/state", guest).status == 403);
  const auto reply = c.get("/admin/state", boss);
  REQUIRE(reply.status == 200);
  const auto all = json(reply.body);
  CHECK(at(all, "detail") == value("as scripted"));
  CHECK(at(all, "open_sockets") == value(1));
  const auto model = at(all, "models", 0);
  CHECK(at(model, "requests_running") == value(0));
  CHECK(at(model, "requests_waiting") == value(4));
  CHECK(at(model, "kv_blocks_used") == value(25));
  CHECK(at(model, "kv_blocks_total") == value(100));
  CHECK(at(model, "kv_block_tokens") == value(16));
  CHECK(at(model, "kv_host_blocks") == value(5));
  CHECK(at(model, "kv_disk_blocks") == value(6));
  CHECK(at(model, "device_memory_reserved_bytes") == value(7000));
  CHECK(at(model, "device_outside_bytes") == value(300));
  CHECK(at(model, "device_memory_touched_bytes") == value(2001));
  CHECK(at(model, "device_weights_bytes") == value(2000));
  CHECK(at(model, "device_kv_bytes") == value(4000));
  CHECK(at(all, "process", "device_memory_bytes") == value(2001));
  CHECK(*at(all, "process", "resident_bytes").as_int() > 0);
  CHECK(at(model, "prompt_tokens") == value(8));
  CHECK(at(model, "generation_tokens") == value(9));
  CHECK(at(model, "steps") == value(10));
  CHECK(at(model, "preemptions") == value(11));
  CHECK(at(model, "executor_restarts") == value(12));
  const auto tenant = at(all, "tenants", 0);
  CHECK(at(tenant, "tenant") == value("guest"));
  CHECK(at(tenant, "model") == value("m"));
  CHECK(at(tenant, "requests_waiting") == value(1));
  CHECK(at(tenant, "requests_running") == value(2));
  CHECK(at(tenant, "prompt_tokens") == value(3));
  CHECK(at(tenant, "cached_prompt_tokens") == value(4));
  CHECK(at(tenant, "generation_tokens") == value(5));
  CHECK(at(tenant, "finished", "stop") == value(6));
  const auto scheduler = at(all, "schedulers", 0);
  CHECK(at(scheduler, "model") == value("m"));
  CHECK(at(scheduler, "kv_blocks_total") == value(20));
  CHECK(at(scheduler, "kv_blocks_used") == value(12));
  CHECK(at(scheduler, "kv_blocks_free") == value(8));
  CHECK(at(scheduler, "cached") == value("0-2"));
  CHECK(at(scheduler, "tied") == value("3"));
  const auto first = at(scheduler, "sequences", 0);
  CHECK(at(first, "sequence") == value(1));
  CHECK(at(first, "request") == value(2));
  CHECK(at(first, "choice") == value(3));
  CHECK(at(first, "tenant") == value("guest"));
  CHECK(at(first, "id") == value("mine"));
  CHECK(at(first, "state") == value("running"));
  CHECK(at(first, "tokens") == value(30));
  CHECK(at(first, "max_tokens") == value(40));
  CHECK(at(first, "kv_blocks") == value(3));
  CHECK(at(first, "blocks") == value("4-6"));
  CHECK(at(scheduler, "sequences", 1, "state") == value("paused"));
  CHECK(at(scheduler, "sequences", 2, "state") == value("waiting"));
  CHECK(at(scheduler, "sequences", 2).find("choice") == nullptr);
  CHECK(at(scheduler, "orphans", 0, "blocks") == value("9"));
  const auto mailbox = at(all, "mailboxes", 0);
  CHECK(at(mailbox, "model") == value("test-model"));
  CHECK(at(mailbox, "actor") == value("batcher"));
  CHECK(at(mailbox, "depth") == value(3));
}

TEST_CASE("Administrators see and order models, and get an error for what cannot be done") {
  running_server s({}, with_boss());
  client c(s.admin_port());
  const auto all = json(c.get("/admin/models", boss).body);
  const auto known = s.engine.models().front();
  const auto first = at(all, "data", 0);
  CHECK(at(first, "id") == value(known.id));
  CHECK(at(first, "state") == value("ready"));
  CHECK(at(first, "pinned") == value(known.pinned));
  for (const std::string order : {"load", "sleep", "unload"}) {
    const std::string path = "/admin/models/" + known.id + "/" + order;
    CHECK(c.post(path, "", guest).status == 403);
    const auto refused = c.post(path, "", boss); // the only model is always loaded
    CHECK(refused.status == 400);
    CHECK(at(json(refused.body), "error", "param") == value("model"));
  }
  const auto refused = c.post("/admin/reload", "", boss); // the server has no configuration file
  CHECK(refused.status == 409);
}
