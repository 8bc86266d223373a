// The configuration reloader while a file system hangs: stopping the daemon does not wait for it,
// and a file that is read too late changes nothing.
#include "tools/twilld/reloader.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

using namespace twill;
using namespace std::chrono_literals;
using tools::reload_report;

namespace {

struct counting_engine final : actors::engine {
  actors::engine_port& port() override { throw 0; }
  void reload(const config::options&) override { ++reloads; }
  int reloads = 0;
};

struct counting_server final : net::server {
  std::vector<std::string> addresses() const override { return {}; }
  std::uint16_t port() const override { return 0; }
  std::string admin_address() const override { return {}; }
  std::string agent_address() const override { return {}; }
  void run() override {}
  void drain() override {}
  void stop() override {}
  std::string reload_certificate(const file_reader& read) override {
    certificate = read("cert.pem").value() + read("key.pem").value();
    return {};
  }
  void reload(const config::options&) override { ++reloads; }
  void on_reload(std::function<std::pair<bool, std::string>()>) override {}
  void trace_with(net::tracer&) override {}
  int reloads = 0;
  std::string certificate;
};

/// A reader of files in which reading one file can hang.
struct slow_files {
  std::string text = "[server]\ndrain_timeout = \"7s\"\n";
  std::string hangs;
  std::promise<void> is_read, go_on;
  std::shared_future<void> may_go_on = go_on.get_future().share();
  std::shared_ptr<int> readers = std::make_shared<int>(); ///< shared by the readers

  file_reader reader() {
    return [this, shared = readers](const std::string& path) -> result<std::string, file_errc> {
      if (path == hangs) {
        is_read.set_value();
        may_go_on.wait();
      }
      return path == "twilld.toml" ? text : path;
    };
  }
};

struct fixture {
  explicit fixture(slow_files& from) : files(from) {
    config::options now;
    now.server.tls_certificate = "cert.pem";
    now.server.tls_key = "key.pem";
    one = std::make_unique<tools::reloader>(
        tools::reloader::parts{{"twilld.toml"},
                               {{"--set", "server.tls_certificate", "cert.pem", true},
                                {"--set", "server.tls_key", "key.pem", true}},
                               now,
                               now,
                               files.reader()},
        engine, server);
  }
  slow_files& files;
  counting_engine engine;
  counting_server server;
  std::unique_ptr<tools::reloader> one;
};

} // namespace

TEST_CASE("a reload takes effect before it is answered") {
  slow_files files;
  fixture b(files);
  CHECK(b.one->drain_timeout() == 30s);
  const auto report = b.one->reload();
  CHECK(report.faults.empty());
  CHECK(report.tls);
  REQUIRE(report.changed.size() == 1);
  CHECK(report.changed[0].key == "server.drain_timeout");
  CHECK(b.one->drain_timeout() == 7s);
  CHECK(b.server.certificate == "cert.pemkey.pem");
  CHECK(b.engine.reloads == 1);
  CHECK(b.server.reloads == 1);
  files.text = "[server]\ndrain_timeout = 1.5\n";
  CHECK(b.one->reload().faults.size() == 1);
  CHECK(b.engine.reloads == 1);
  CHECK(b.one->close());
  CHECK_FALSE(b.one->order([](const reload_report&) {}));
}

TEST_CASE("nobody waits for a reload that hangs, and it changes nothing once the end has begun") {
  for (const std::string file : {"twilld.toml", "key.pem"}) {
    slow_files files;
    files.hangs = file;
    {
      fixture b(files);
      int received = 0;
      REQUIRE(b.one->order([&](const reload_report&) { ++received; }));
      files.is_read.get_future().wait();
      CHECK(b.one->drain_timeout() == 30s);
      const auto report = b.one->reload(10ms);
      REQUIRE(report.faults.size() == 1);
      CHECK(report.faults[0].find("a file system may hang") != std::string::npos);
      while (b.one->order([&](const reload_report&) { ++received; })) {
      }
      CHECK_FALSE(b.one->close());
      CHECK(received == 0);
      CHECK(b.engine.reloads == 0);
    }
    const std::weak_ptr<int> alive = files.readers;
    files.readers.reset();
    files.go_on.set_value(); // after the engine and the server were destroyed
    for (int i = 0; i < 5000 && !alive.expired(); ++i)
      std::this_thread::sleep_for(1ms);
    CHECK(alive.expired());
  }
}
