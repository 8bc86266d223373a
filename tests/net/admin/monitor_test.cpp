// What the monitor sends to dashboards (the metrics of the last hour, then a sample every second,
// and faults), and which dashboards it sends to.
#include "net/admin/admin_stream.hpp"
#include "net/admin/metrics_history.hpp"
#include "net/admin/monitor.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

history_row row_at(std::int64_t ms, std::uint64_t first_tokens = 0) {
  actors::model_stats one;
  one.stats.generation_tokens = static_cast<std::uint64_t>(ms) / 10;
  one.stats.time_to_first_token_seconds = {{0.1, 1}, {first_tokens, 0, 0}, 0};
  return make_history_row(ms, {one, one}, 5, 7);
}

value rows_of(const metrics_history& history, const char* which) {
  std::string text;
  json_writer writer(text);
  writer.begin_object();
  history.write(writer);
  writer.end_object();
  return at(json(text), which);
}

struct watching_host final : dialect_host {
  int wakes = 0;
  engine_requests::key start(actors::request) override { return 0; }
  net::result<engine_requests::key> start_stored(stored_head, actors::request request) override {
    return start(std::move(request));
  }
  void find_stored(const std::string&, const std::string&, found_stored then) override {
    then(std::optional<followed_response>());
  }
  engine_requests::key follow(std::shared_ptr<event_source>) override { return 0; }
  void cancel(engine_requests::key) override {}
  bool end(engine_requests::key which) override {
    cancel(which);
    return false;
  }
  void pause(engine_requests::key) override {}
  void resume(engine_requests::key) override {}
  bool output_full() const override { return false; }
  std::function<void()> waker() override {
    return [this] { ++wakes; };
  }
};

config::options with_boss(bool admin = true) {
  config::options all;
  all.tenants.emplace_back().name = "boss";
  all.tenants[0].key_sha256 = {digest_of("boss-key")};
  all.tenants[0].admin = admin;
  return all;
}

struct dashboard {
  scripted_engine engine;
  monitor watched{engine, [] { return 3; }};
  config::options options = with_boss();
  current_settings current{options};
  response_store responses;
  find_response find_previous;
  watching_host host;
  std::unique_ptr<dialect> spoken;

  void connect(const std::string& key) {
    auto holder = key.empty() ? api_keys::holder{} : *current.get()->keys.holder_of(key);
    spoken = std::make_unique<admin_stream>(dialect_scope{host, engine, options, current, responses,
                                                          find_previous, std::move(holder), "id", 1,
                                                          &watched});
  }
  /// The next frame that is not about faults, which other tests may have left.
  std::optional<value> frame() {
    std::string out;
    while (spoken->next_frame(out)) {
      auto read = json(out);
      if (at(read, "type") != value("faults")) return read;
    }
    return std::nullopt;
  }
};

} // namespace

TEST_CASE("An hour of figures is kept in bounded memory") {
  metrics_history history;
  for (std::int64_t second = 0; second < 5000; ++second)
    history.add(row_at(1000 * second));
  const auto fine = rows_of(history, "fine");
  const auto coarse = rows_of(history, "coarse");
  REQUIRE(fine.as_list()->size() == metrics_history::fine_rows);
  REQUIRE(coarse.as_list()->size() == metrics_history::coarse_rows);
  // The first row has absolute values, each later row the differences to the row before.
  CHECK(at(fine, 0, 0) == value(std::int64_t{4'700'000}));
  CHECK(at(fine, 1, 0) == value(std::int64_t{1000}));
  CHECK(at(coarse, 0, 0) == value(std::int64_t{1'400'000}));
  CHECK(at(coarse, 359, 0) == value(std::int64_t{10'000}));
}

TEST_CASE("A row sums up all models, and reports histograms as changed buckets") {
  const auto before = row_at(1000, 4);
  const auto now = row_at(2000, 6);
  CHECK(now.values[8] == 400); // generation_tokens of two models
  std::string text;
  json_writer writer(text);
  write_row(writer, now, before);
  CHECK(text == "[1000,0,0,0,0,0,0,0,200,0,0,0,0,0,0,0,0,0,0,0,0,[0,4],[]]");
}

TEST_CASE("A sample names models and tenants, the busiest first, and says what it left out") {
  server_snapshot now;
  now.number = 9;
  actors::model_info model;
  model.id = "</script><b>\"m\"";
  now.models = {model};
  now.stats = {{model.id, {}}};
  for (int i = 0; i < 150; ++i) {
    actors::tenant_stats one;
    one.tenant = "t" + std::to_string(i);
    one.requests_waiting = i;
    now.tenants.push_back(one);
  }
  const auto frame = json(sample_frame(now));
  CHECK(at(frame, "models", 0, "model") == value(model.id));
  CHECK(at(frame, "tenants").as_list()->size() == max_shown_tenants);
  CHECK(at(frame, "tenants", 0, "tenant") == value("t149"));
  CHECK(at(frame, "tenants_left_out") == value(std::int64_t{50}));
}

TEST_CASE("A dashboard gets the past once, then each sample that it can take") {
  dashboard d;
  d.watched.sample(1000);
  d.connect("");
  CHECK(at(d.frame().value(), "type") == value("history"));
  CHECK(at(d.frame().value(), "number") == value(std::int64_t{1}));
  CHECK(!d.frame().has_value());
  for (int i = 2; i < 10; ++i)
    d.watched.sample(1000 * i);
  CHECK(d.host.wakes == 8);
  // The socket read nothing meanwhile: samples 2 to 8 are not queued for it, but lost.
  CHECK(at(d.frame().value(), "number") == value(std::int64_t{9}));
  CHECK(!d.frame().has_value());
  CHECK(d.spoken->waiting_bytes() == 0);
  d.spoken.reset();
  CHECK(d.watched.subscribers() == 0);
}

TEST_CASE("A dashboard whose key is revoked gets a notice of this, and nothing more") {
  dashboard d;
  d.watched.sample(1000);
  d.connect("boss-key");
  CHECK(at(d.frame().value(), "type") == value("history"));
  d.current.replace(with_boss(false));
  const auto refused = d.frame().value();
  CHECK(at(refused, "type") == value("error"));
  d.watched.sample(2000);
  CHECK(!d.frame().has_value());
}
