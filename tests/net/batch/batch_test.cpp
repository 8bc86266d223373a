// Files and batches over loopback sockets, with a scripted engine behind the server.
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "net/api_keys.hpp"
#include "net/batch/batch.hpp"
#include "net/batch/batch_table.hpp"
#include "net/batch/file_store.hpp"
#include "net/http/multipart.hpp"
#include "net/random_id.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::testing;
namespace fs = std::filesystem;

namespace {

config::options options_with(std::int32_t max_running, std::int64_t max_bytes = mib) {
  config::options o;
  o.batches.max_running = max_running;
  o.batches.max_folder_bytes = max_bytes;
  return o;
}

std::string line(const std::string& id, const std::string& body = R"({"prompt":"x"})") {
  return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/completions","body":)" + body +
         "}\n";
}

std::string lines(int n) {
  std::string out;
  for (int i = 0; i < n; ++i)
    out += line("r" + std::to_string(i));
  return out;
}

std::string form(const std::string& content, const std::string& purpose = "batch") {
  return "--XX\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose +
         "\r\n--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n"
         "Content-Type: application/octet-stream\r\n\r\n" +
         content + "\r\n--XX--\r\n";
}

constexpr const char* form_type = "Content-Type: multipart/form-data; boundary=XX\r\n";

/// The engine never begins these requests: each waits until it is cancelled.
script never_answers() {
  script s;
  s.start_delay = 1h;
  return s;
}

std::string text_of(const value& v) {
  return v.as_string() != nullptr ? *v.as_string() : "";
}

std::string upload(client& c, const std::string& content, const std::string& headers = "") {
  const auto r = c.post("/v1/files", form(content), form_type + headers);
  REQUIRE(r.status == 200);
  return text_of(at(json(r.body), "id"));
}

std::string start(client& c, const std::string& file, const std::string& window = "24h",
                  const std::string& headers = "") {
  const auto r =
      c.post("/v1/batches",
             R"({"input_file_id":")" + file +
                 R"(","endpoint":"/v1/completions","completion_window":")" + window + "\"}",
             headers);
  REQUIRE(r.status == 200);
  CHECK(at(json(r.body), "status") == value("validating"));
  return text_of(at(json(r.body), "id"));
}

value wait_status(client& c, const std::string& id, const std::string& wanted,
                  const std::string& headers = "") {
  for (int i = 0; i < 2000; ++i) {
    auto now = json(c.get("/v1/batches/" + id, headers).body);
    if (at(now, "status") == value(wanted)) return now;
    std::this_thread::sleep_for(10ms);
  }
  FAIL("batch never became " << wanted << ": " << c.get("/v1/batches/" + id).body);
  return {};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto i = text.find(part); i != std::string::npos; i = text.find(part, i + 1))
    ++n;
  return n;
}

std::string content(client& c, const value& id) {
  return c.get("/v1/files/" + text_of(id) + "/content").body;
}

struct temporary_folder {
  fs::path path = fs::temp_directory_path() / net::make_id("twill-test-");
  temporary_folder() { fs::create_directory(path); }
  ~temporary_folder() { fs::remove_all(path); }
};

/// The contents of all files in a folder, joined.
std::string text_of_files(const fs::path& folder) {
  std::string all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream in(entry.path());
    all += std::string(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

} // namespace

TEST_CASE("A batch runs all its lines and writes what they were answered") {
  running_server s({}, options_with(3));
  client c(s.port());
  const auto done = wait_status(c, start(c, upload(c, lines(20))), "completed");
  CHECK(at(done, "request_counts", "completed") == value(20));
  CHECK(at(done, "request_counts", "failed") == value(0));
  CHECK(at(done, "error_file_id").is_null());
  const auto out = content(c, at(done, "output_file_id"));
  CHECK(count(out, "\n") == 20);
  CHECK(count(out, "Hello, world") == 20);
  for (int i = 0; i < 20; ++i)
    CHECK(count(out, "\"custom_id\":\"r" + std::to_string(i) + "\"") == 1);
}

TEST_CASE("No more sequences of batches run than configured, however they are asked for") {
  running_server s({}, options_with(3));
  s.engine.set_script([](const actors::request& r) {
    return std::get<actors::text_prompt>(r.prompt).text == "interactive" ? script{}
                                                                         : never_answers();
  });
  client c(s.port());
  const auto several = line("many", R"({"prompt":["a","b","c","d","e"]})");
  const auto id = start(c, upload(c, several + lines(10)));
  REQUIRE(s.engine.wait_running(3));
  const auto beside = c.post("/v1/completions", R"({"prompt":"interactive"})");
  CHECK(contains(beside.body, "Hello, world"));
  CHECK(s.engine.running() == 3);
  c.post("/v1/batches/" + id + "/cancel", "");
  const auto done = wait_status(c, id, "cancelled");
  CHECK(count(content(c, at(done, "error_file_id")), "batch_cancelled") == 11);
}

TEST_CASE("A request of more choices than may run still runs") {
  running_server s({}, options_with(1));
  client c(s.port());
  const auto content_ = line("two", R"({"prompt":"x","n":2})") + line("one");
  const auto done = wait_status(c, start(c, upload(c, content_)), "completed");
  CHECK(at(done, "request_counts", "completed") == value(2));
}

TEST_CASE("Batches take turns") {
  running_server s({}, options_with(1));
  client c(s.port());
  const auto file = upload(c, lines(400));
  const auto long_one = start(c, file);
  const auto short_one = start(c, upload(c, lines(2)));
  wait_status(c, short_one, "completed");
  CHECK(at(json(c.get("/v1/batches/" + long_one).body), "status") == value("in_progress"));
  CHECK(c.post("/v1/files/" + file, "").status == 405);
  c.send("DELETE /v1/files/" + file + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(c.read_reply().status == 409); // a batch uses the file
  c.post("/v1/batches/" + long_one + "/cancel", "");
  wait_status(c, long_one, "cancelled");
  c.send("DELETE /v1/files/" + file + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(c.read_reply().status == 200);
}

TEST_CASE("Tenants take turns, however many batches one has") {
  auto o = options_with(1);
  o.server.api_keys = {"one", "two"};
  running_server s({}, o);
  const std::string one = "Authorization: Bearer one\r\n", two = "Authorization: Bearer two\r\n";
  client c(s.port());
  std::vector<std::string> many;
  const auto file = upload(c, lines(400), one);
  for (int i = 0; i < 10; ++i)
    many.push_back(start(c, file, "24h", one));
  wait_status(c, many.back(), "in_progress", one);
  wait_status(c, start(c, upload(c, lines(40), two), "24h", two), "completed", two);
  const auto own = "key-" + net::digest_of("two").substr(0, 12);
  std::vector<std::size_t> turns; // the positions of the second tenant's lines
  const auto sent = s.engine.submitted();
  for (std::size_t i = 0; i < sent.size(); ++i)
    if (sent[i].tenant == own) turns.push_back(i);
  REQUIRE(turns.size() == 40);
  for (std::size_t i = 1; i < turns.size(); ++i)
    CHECK(turns[i] - turns[i - 1] <= 2);
}

TEST_CASE("A tenant has its share of batches, files and bytes, and others have theirs") {
  auto o = options_with(1);
  o.server.api_keys = {"one", "two"};
  o.batches.tenant_share = 0.03;
  running_server s(never_answers(), o);
  const std::string one = "Authorization: Bearer one\r\n", two = "Authorization: Bearer two\r\n";
  const std::string of_batches = R"(","endpoint":"/v1/completions","completion_window":"24h"})";
  client c(s.port());
  const auto file = upload(c, lines(1), one);
  for (int i = 0; i < 3; ++i)
    start(c, file, "24h", one);
  const auto more = c.post("/v1/batches", R"({"input_file_id":")" + file + of_batches, one);
  CHECK(more.status == 429);
  CHECK(contains(more.body, "3 batches of this tenant are under way"));
  CHECK(contains(more.body, "batches.tenant_share"));
  start(c, upload(c, lines(1), two), "24h", two);
  // The tenant's share of the bytes is 3 % of 1 MiB.
  upload(c, std::string(20'000, 'x'), one);
  const auto large = c.post("/v1/files", form(std::string(15'000, 'x')), form_type + one);
  CHECK(large.status == 507);
  CHECK(contains(large.body, "its share (`batches.tenant_share`) of `batches.max_folder`"));
  upload(c, std::string(20'000, 'x'), two);
  // The tenant's share of the files is 3 % of 10,000, and two exist already.
  for (int i = 0; i < 298; ++i)
    upload(c, "x", one);
  const auto another = c.post("/v1/files", form("x"), form_type + one);
  CHECK(another.status == 429);
  CHECK(contains(another.body, "300 files of this tenant are stored"));
  upload(c, "x", two);
  c.send("DELETE /v1/files/" + upload(c, "x", two) + " HTTP/1.1\r\nHost: localhost\r\n" + two +
         "\r\n");
  CHECK(c.read_reply().status == 200);
}

TEST_CASE("What a tenant deletes, and what it stored before a restart, counts for its share") {
  temporary_folder kept;
  const auto half = [] { return 0.5; };
  std::string id;
  {
    net::file_store store(kept.path.string(), 1000, half);
    CHECK_FALSE(store.put({"", "one", "a", "batch", 0, 0}, std::string(501, 'x')).ok());
    const auto put = store.put({"", "one", "a", "batch", 0, 0}, std::string(400, 'x'));
    REQUIRE(put.ok());
    id = put.value().id;
    CHECK_FALSE(store.put({"", "one", "a", "batch", 0, 0}, std::string(101, 'x')).ok());
    CHECK(store.put({"", "two", "a", "batch", 0, 0}, std::string(500, 'x')).ok());
    CHECK(store.held_bytes() == 900);
  }
  net::file_store store(kept.path.string(), 1000, half);
  CHECK_FALSE(store.put({"", "one", "a", "batch", 0, 0}, std::string(101, 'x')).ok());
  CHECK(store.put({"", "one", "a", "batch", 0, 0}, std::string(100, 'x')).ok());
  CHECK(store.erase(id, "one").ok());
  CHECK(store.put({"", "one", "a", "batch", 0, 0}, std::string(400, 'x')).ok());
}

TEST_CASE("A full table of batches forgets those of whoever has most") {
  net::batch_table table;
  const auto add = [&](const std::string& id, const std::string& tenant) {
    net::batch one;
    one.id = id;
    one.tenant = tenant;
    one.reach(net::batch_status::completed);
    return table.add(one, 100) == net::batch_table::added::yes;
  };
  REQUIRE(add("first", "two"));
  for (std::size_t i = 0; i < 3 * net::batch_table::max_batches; ++i)
    REQUIRE(add("b" + std::to_string(i), "one"));
  CHECK(table.find("first", "two"));
  CHECK_FALSE(table.find("b0", "one"));
  CHECK(table.find("b2999", "one"));
  CHECK(table.list("one").size() == net::batch_table::max_batches - 1);
}

TEST_CASE("A full queue makes lines wait, another failure ends its line alone") {
  running_server s({}, options_with(2));
  s.engine.set_script([n = 0](const actors::request& r) mutable {
    script play;
    if (++n <= 3) play.refusal = {actors::errc::queue_full, "full", ""};
    const auto* text = std::get_if<actors::text_prompt>(&r.prompt);
    if (text != nullptr && text->text == "bad")
      play.failure = {actors::errc::executor_failed, "the step failed", ""};
    return play;
  });
  client c(s.port());
  const auto id = start(c, upload(c, lines(3) + line("bad", R"({"prompt":"bad"})")));
  const auto done = wait_status(c, id, "completed");
  CHECK(at(done, "request_counts", "completed") == value(3));
  CHECK(at(done, "request_counts", "failed") == value(1));
  const auto errors = content(c, at(done, "error_file_id"));
  CHECK(contains(errors, R"("custom_id":"bad","response":{"status_code":500)"));
}

TEST_CASE("A tenant whose tokens are used up does not hold up the batches of another") {
  auto o = options_with(2);
  o.server.api_keys = {"one", "two"};
  running_server s({}, o);
  std::atomic<bool> refuse{true};
  s.engine.set_script(
      [&, poor = "key-" + net::digest_of("one").substr(0, 12)](const actors::request& r) {
        script play;
        if (refuse && r.tenant == poor)
          play.refusal = {actors::errc::rate_limited, "none left", ""};
        return play;
      });
  client c(s.port());
  const std::string one = "Authorization: Bearer one\r\n", two = "Authorization: Bearer two\r\n";
  const auto waits = start(c, upload(c, lines(5), one), "24h", one);
  const auto goes_on = start(c, upload(c, lines(5), two), "24h", two);
  wait_status(c, goes_on, "completed", two);
  CHECK(at(json(c.get("/v1/batches/" + waits, one).body), "status") == value("in_progress"));
  refuse = false;
  const auto done = wait_status(c, waits, "completed", one);
  CHECK(at(done, "request_counts", "completed") == value(5));
}

TEST_CASE("A line that fails gives back the room of all its requests") {
  running_server s({}, options_with(2));
  s.engine.set_script([](const actors::request& r) {
    const auto& text = std::get<actors::text_prompt>(r.prompt).text;
    if (text == "slow") return never_answers();
    script play;
    if (text == "bad") play.failure = {actors::errc::executor_failed, "the step failed", ""};
    return play;
  });
  client c(s.port());
  std::string content_;
  for (int i = 0; i < 3; ++i)
    content_ += line("bad" + std::to_string(i), R"({"prompt":["slow","bad"]})");
  const auto done = wait_status(c, start(c, upload(c, content_ + lines(2))), "completed");
  CHECK(at(done, "request_counts", "completed") == value(2));
  CHECK(at(done, "request_counts", "failed") == value(3));
}

TEST_CASE("A batch waits while the model is loaded, and loses no line") {
  running_server s({}, options_with(2));
  s.engine.set_state(actors::engine_state::loading);
  client c(s.port());
  const auto id = start(c, upload(c, lines(3)));
  wait_status(c, id, "in_progress");
  std::this_thread::sleep_for(300ms); // time for the batch to try and be refused
  CHECK(s.engine.submitted().empty());
  s.engine.set_state(actors::engine_state::ready);
  const auto done = wait_status(c, id, "completed");
  CHECK(at(done, "request_counts", "completed") == value(3));
  CHECK(count(content(c, at(done, "output_file_id")), "Hello, world") == 3);
}

TEST_CASE("A batch for a model that cannot be loaded holds up no other batch") {
  running_server s({}, options_with(2));
  std::atomic<bool> broken{true};
  std::atomic<int> tries{0};
  const auto answer = GENERATE(actors::errc::not_ready, actors::errc::queue_timed_out);
  s.engine.set_script([&](const actors::request& r) {
    script play;
    if (std::get<actors::text_prompt>(r.prompt).text != "broken" || !broken) return play;
    ++tries;
    play.refusal = {answer, "the model broken cannot be served: its file is cut off", ""};
    return play;
  });
  client c(s.port());
  std::string content_;
  for (int i = 0; i < 5; ++i)
    content_ += line("b" + std::to_string(i), R"({"prompt":"broken"})");
  const auto file = upload(c, content_ + lines(3)); // the other lines of the batch wait as well
  const auto first = start(c, file), second = start(c, file);
  const auto ends_late = start(c, file, "1s");
  for (int i = 0; i < 3; ++i)
    wait_status(c, start(c, upload(c, lines(20))), "completed");
  // Lines that still wait when their window ends get the reason as their error.
  const auto expired = wait_status(c, ends_late, "expired");
  CHECK(count(content(c, at(expired, "error_file_id")), "its file is cut off") == 8);
  CHECK(at(json(c.get("/v1/batches/" + first).body), "status") == value("in_progress"));
  // Each batch tries two lines at once, then one at a time after 200, 400, 800 ms and so on.
  CHECK(tries < 3 * 2 + 3 * 4);
  broken = false;
  for (const auto& id : {first, second})
    CHECK(at(wait_status(c, id, "completed"), "request_counts", "completed") == value(8));
}

TEST_CASE("Requests that wait for a model to load do not take the room of other batches") {
  running_server s({}, options_with(3));
  std::atomic<int> tries{0};
  s.engine.set_script([&](const actors::request& r) {
    if (std::get<actors::text_prompt>(r.prompt).text != "broken") return script{};
    auto play = never_answers(); // the load of the model does not end
    if (++tries <= 3) {
      play.start_delay = 0us;
      play.refusal = {actors::errc::not_ready, "the model cannot be served", ""};
    }
    return play;
  });
  client c(s.port());
  std::string content_;
  for (int i = 0; i < 9; ++i)
    content_ += line("b" + std::to_string(i), R"({"prompt":"broken"})");
  const auto waiting = start(c, upload(c, content_));
  for (int i = 0; i < 2000 && tries < 4; ++i)
    std::this_thread::sleep_for(10ms);
  wait_status(c, start(c, upload(c, lines(20))), "completed");
  CHECK(tries == 4);
  c.post("/v1/batches/" + waiting + "/cancel", "");
  const auto ended = wait_status(c, waiting, "cancelled");
  CHECK(at(ended, "request_counts", "failed") == value(9));
}

TEST_CASE("Lines of a tenant whose key was taken away are answered with that") {
  temporary_folder kept;
  auto o = options_with(2);
  o.batches.folder = kept.path.string();
  o.server.api_keys = {"one", "two"};
  running_server s({}, o);
  s.engine.set_state(actors::engine_state::loading);
  client c(s.port());
  const std::string key = "X-Api-Key: one\r\n";
  wait_status(c, start(c, upload(c, lines(3), key), "24h", key), "in_progress", key);
  o.server.api_keys = {"two"};
  s.server->reload(o);
  s.engine.set_state(actors::engine_state::ready);
  const auto n_refused = [&] { return count(text_of_files(kept.path), "\"status_code\":401"); };
  for (int i = 0; i < 2000 && n_refused() < 3; ++i)
    std::this_thread::sleep_for(10ms);
  CHECK(n_refused() == 3);
  CHECK(s.engine.submitted().empty());
}

TEST_CASE("More batches than may be under way are refused, and hold no file") {
  running_server s(never_answers(), options_with(1));
  client c(s.port());
  const auto file = upload(c, lines(1));
  for (std::size_t i = 0; i < net::batch_table::max_active; ++i)
    start(c, file);
  const auto spare = upload(c, lines(1));
  const auto refused = c.post("/v1/batches", R"({"input_file_id":")" + spare +
                                                 R"(","endpoint":"/v1/completions",)"
                                                 R"("completion_window":"24h"})");
  CHECK(refused.status == 429);
  c.send("DELETE /v1/files/" + spare + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(c.read_reply().status == 200);
}

TEST_CASE("A batch whose window passes expires and keeps what was answered") {
  running_server s({}, options_with(1));
  s.engine.set_script(
      [n = 0](const actors::request&) mutable { return ++n == 1 ? script{} : never_answers(); });
  client c(s.port());
  // A window ends on a whole second: of four, at least three are left for the first line.
  const auto done = wait_status(c, start(c, upload(c, lines(3)), "4s"), "expired");
  CHECK(count(content(c, at(done, "output_file_id")), "Hello, world") == 1);
  CHECK(count(content(c, at(done, "error_file_id")), "batch_expired") == 2);
  CHECK(s.engine.wait_cancelled(1));
}

TEST_CASE("An input file at fault fails with its lines") {
  running_server s({}, options_with(1));
  client c(s.port());
  const auto failed =
      wait_status(c, start(c, upload(c, line("a") + "[1]\n" + line("a"))), "failed");
  CHECK(at(failed, "errors", "data", 0, "line") == value(2));
  CHECK(at(failed, "errors", "data", 1, "line") == value(3));
  CHECK(at(failed, "errors", "data", 1, "code") == value("duplicate_custom_id"));
  const auto empty = wait_status(c, start(c, upload(c, " \n\r\n")), "failed");
  CHECK(at(empty, "errors", "data", 0, "code") == value("empty_file"));
}

TEST_CASE("Files stay within their budget; a batch that writes beyond it fails") {
  running_server s({}, options_with(1, 3000));
  client c(s.port());
  CHECK(c.post("/v1/files", form(std::string(4000, 'x')), form_type).status == 507);
  const auto input = upload(c, lines(20));
  const auto failed = wait_status(c, start(c, input), "failed");
  CHECK(at(failed, "errors", "data", 0, "code") == value("storage_full"));
  const auto kept = content(c, at(failed, "output_file_id"));
  CHECK(count(kept, "\n") ==
        static_cast<std::size_t>(*at(failed, "request_counts", "completed").as_int()));
}

TEST_CASE("Files and batches belong to their key") {
  auto o = options_with(1);
  o.server.api_keys = {"one", "two"};
  running_server s({}, o);
  client c(s.port());
  const std::string one = "Authorization: Bearer one\r\n", two = "Authorization: Bearer two\r\n";
  const auto file = upload(c, lines(1), one);
  CHECK(c.get("/v1/files/" + file).status == 401);
  CHECK(c.get("/v1/files/" + file, two).status == 404);
  CHECK(c.get("/v1/files/" + file + "/content", two).status == 404);
  CHECK(c.get("/v1/files/" + file, one).status == 200);
  CHECK(contains(c.get("/v1/files", two).body, R"("data":[])"));
}

TEST_CASE("Errors for files and batches of another server show the name in their id") {
  auto o = options_with(1);
  o.server.name = "b2";
  running_server s({}, o);
  client c(s.port());
  const std::string digits = "0123456789abcdef01234567";
  const auto message_of = [](const http_result& reply) {
    return text_of(at(json(reply.body), "error", "message"));
  };
  const auto check = [&](const http_result& reply, const std::string& code) {
    CHECK(reply.status == 404);
    CHECK(at(json(reply.body), "error", "code") == value(code));
    CHECK(message_of(reply).ends_with(
        " on this server, \"b2\": the id names the server \"a1\"; send the request there"));
  };
  const auto file = "file-a1." + digits, batch = "batch_a1." + digits;
  check(c.get("/v1/files/" + file), "file_not_found");
  check(c.get("/v1/files/" + file + "/content"), "file_not_found");
  c.send("DELETE /v1/files/" + file + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  check(c.read_reply(), "file_not_found");
  check(c.get("/v1/batches/" + batch), "batch_not_found");
  check(c.post("/v1/batches/" + batch + "/cancel", ""), "batch_not_found");
  const auto begun = c.post("/v1/batches", R"({"input_file_id":")" + file +
                                               R"(","endpoint":"/v1/completions",)"
                                               R"("completion_window":"24h"})");
  CHECK(begun.status == 404);
  CHECK(at(json(begun.body), "error", "param") == value("input_file_id"));
  CHECK(message_of(begun).ends_with("got \"" + file +
                                    "\"; this server is \"b2\", and the id names the server "
                                    "\"a1\": send the request there"));
  const auto own = upload(c, lines(1));
  CHECK(own.starts_with("file-b2."));
  const auto run = start(c, own);
  CHECK(run.starts_with("batch_b2."));
  const auto done = wait_status(c, run, "completed");
  CHECK(text_of(at(done, "output_file_id")).starts_with("file-b2."));
  CHECK(contains(content(c, at(done, "output_file_id")), "\"id\":\"cmpl-b2."));
  CHECK(contains(c.get("/v1/files/file-b2." + digits).body,
                 R"(on this server, \"b2\"; GET /v1/files lists yours)"));
}

TEST_CASE("A large file is sent piece by piece, to a slow reader too") {
  running_server s({}, options_with(1, 64 * mib));
  client c(s.port());
  const std::string big(9 * mib, 'y');
  const auto id = upload(c, big);
  const auto r = c.get("/v1/files/" + id + "/content");
  CHECK(r.status == 200);
  CHECK(r.body == big);
  CHECK(c.get("/health").status == 200); // the connection stays open
  c.send("HEAD /v1/files/" + id + "/content HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(c.read_reply(true).header("content-length") == std::to_string(big.size()));
  CHECK(c.get("/health").status == 200);
  client leaver(s.port(), 4096);
  leaver.send("GET /v1/files/" + id + "/content HTTP/1.1\r\nHost: localhost\r\n\r\n");
  leaver.read_until("yyyy");
  leaver.reset();
  CHECK(c.get("/v1/files/" + id).status == 200);
}

TEST_CASE("A stored file is sent to its last byte, however few are left for it") {
  running_server s({}, options_with(1, 8 * mib));
  client c(s.port());
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{256 * 1024 + 1}}) {
    const auto stored = std::string(size - 1, 'y') + "z";
    const auto r = c.get("/v1/files/" + upload(c, stored) + "/content");
    CHECK(r.status == 200);
    CHECK(r.body == stored);
  }
  CHECK(c.get("/health").status == 200); // the connection stays open
}

TEST_CASE("A drain does not wait for the lines of batches, and the next server goes on with them") {
  temporary_folder kept;
  auto o = options_with(2);
  o.batches.folder = kept.path.string();
  std::string id;
  {
    running_server s(never_answers(), o);
    client c(s.port());
    id = start(c, upload(c, lines(5)));
    REQUIRE(s.engine.wait_running(2));
    s.server->drain();
    CHECK(s.engine.wait_cancelled(2, 20s));
    s.join();
  }
  running_server s({}, o);
  client c(s.port());
  const auto done = wait_status(c, id, "completed");
  CHECK(at(done, "request_counts", "completed") == value(5));
  CHECK(count(content(c, at(done, "output_file_id")), "Hello, world") == 5);
}

TEST_CASE("A configured folder is kept and read again, a temporary one goes") {
  temporary_folder kept;
  std::string id;
  {
    net::file_store store(kept.path.string(), 1000);
    const auto put = store.put({"", "me", "a \"name\"", "batch", 0, 0}, "hello");
    REQUIRE(put.ok());
    id = put.value().id;
    CHECK(store.held_bytes() == 5);
    const auto half = store.create("me"); // never published
    REQUIRE(half.ok());
    REQUIRE(half.value()->append("lost").ok());
  }
  std::ofstream(kept.path / "file-broken.json") << "{";
  std::ofstream(kept.path / "notes.txt") << "not ours";
  net::file_store again(kept.path.string(), 1000);
  CHECK(again.held_bytes() == 5);
  REQUIRE(again.find(id, "me"));
  CHECK(again.find(id, "me")->filename == "a \"name\"");
  CHECK(!again.find(id, "you"));
  CHECK(again.erase(id, "me").ok());
  CHECK(again.held_bytes() == 0);
  CHECK(!fs::exists(kept.path / id));
  CHECK_THROWS(net::file_store((kept.path / "notes.txt").string(), 1000));

  fs::path made;
  {
    const auto before = fs::temp_directory_path();
    net::file_store store("", 1000);
    const auto put = store.put({"", "me", "a", "batch", 0, 0}, "hello");
    REQUIRE(put.ok());
    for (const auto& entry : fs::directory_iterator(before))
      if (fs::exists(entry.path() / put.value().id)) made = entry.path();
    CHECK(!made.empty());
  }
  CHECK(!fs::exists(made));
}

TEST_CASE("What a killed daemon left behind is removed at the next start") {
  // The child process ends without running destructors. It has one store in a temporary folder that
  // the store made, and one in a configured folder.
  temporary_folder kept, temporary;
  const std::string old_tmp = std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "";
  ::setenv("TMPDIR", temporary.path.c_str(), 1);
  const auto in_use = [&] {
    return std::distance(fs::directory_iterator(temporary.path), fs::directory_iterator());
  };
  const pid_t child = ::fork();
  if (child == 0) {
    net::file_store own("", 1000), configured(kept.path.string(), 1000);
    const auto put = own.put({"", "me", "a", "batch", 0, 0}, "hello");
    const auto whole = configured.put({"", "me", "a", "batch", 0, 0}, "hello");
    const auto half = configured.create("me");
    const bool written = put.ok() && whole.ok() && half.ok() && half.value()->append("half").ok();
    ::_exit(written ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  CHECK(in_use() == 1);
  {
    std::ofstream(kept.path / "file-of-mine") << "not ours";
    net::file_store again(kept.path.string(), 1000);
    CHECK(again.list("me").size() == 1);
    std::size_t n = 0;
    for (const auto& file : fs::directory_iterator(kept.path))
      n += file.path().filename().string().starts_with("file-") ? 1 : 0;
    CHECK(n == 3); // the whole file, its description, and the file that is not ours
  }
  {
    net::file_store living("", 1000);
    CHECK(in_use() == 0);
    REQUIRE(living.put({"", "me", "a", "batch", 0, 0}, "hello").ok());
    net::file_store next("", 1000); // does not take the folder that `living` uses
    CHECK(in_use() == 1);
    CHECK(living.list("me").size() == 1);
  }
  if (old_tmp.empty())
    ::unsetenv("TMPDIR");
  else
    ::setenv("TMPDIR", old_tmp.c_str(), 1);
}

TEST_CASE("A daemon that starts leaves the folder that another one makes at that moment") {
  std::atomic<bool> done = false;
  std::thread starts([&] {
    while (!done)
      net::file_store("", 1000);
  });
  int stored = 0;
  for (int i = 0; i < 1000; ++i) {
    net::file_store store("", 1000);
    const auto put = store.put({"", "me", "a", "batch", 0, 0}, "hello");
    if (put.ok() && store.open(put.value().id) != nullptr) ++stored;
  }
  done = true;
  starts.join();
  CHECK(stored == 1000);
}

TEST_CASE("Files of a folder stay, whatever name made their ids") {
  temporary_folder kept;
  std::vector<std::string> ids;
  for (const std::string name : {"", "a1", "b2"}) {
    net::file_store store(kept.path.string(), 1000, {}, name);
    const auto put = store.put({"", "me", "a", "batch", 0, 0}, "hello");
    REQUIRE(put.ok());
    ids.push_back(put.value().id);
    CHECK(ids.back().starts_with(name.empty() ? "file-" : "file-" + name + "."));
    for (const auto& id : ids)
      CHECK(store.open(id) != nullptr);
    CHECK(store.list("me").size() == ids.size());
  }
  // Unpublished files are removed, whichever name the server had when they were created.
  for (const auto& id : ids)
    fs::remove(kept.path / (id + ".json"));
  net::file_store next(kept.path.string(), 1000, {}, "c3");
  CHECK(next.list("me").empty());
  for (const auto& id : ids)
    CHECK_FALSE(fs::exists(kept.path / id));
}

TEST_CASE("What was written before the disk was full can be published") {
  temporary_folder kept;
  net::file_store store(kept.path.string(), mib);
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 20'000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::size_t n = 0;
  net::result<net::stored_file> published = net::fail({net::errc::storage_full, "", ""});
  {
    auto writer = store.create("me");
    REQUIRE(writer.ok());
    const std::string reply = std::string(2999, 'r') + "\n";
    while (n < 100 && writer.value()->append(reply).ok())
      ++n;
    published = writer.value()->publish({"", "me", "out", "batch_output", 0, 0});
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(n == 6);
  REQUIRE(published.ok());
  CHECK(fs::file_size(kept.path / published.value().id) == 6 * 3000); // whole lines
  CHECK(store.held_bytes() == 6 * 3000);
}

TEST_CASE("A batch may take thirty days and no longer") {
  running_server s(never_answers(), options_with(1));
  client c(s.port());
  const auto file = upload(c, lines(1));
  start(c, file, "30d");
  start(c, file, "720h");
  const auto long_text = std::string(40, '0') + "24h"; // too long for a small description
  for (const auto& window : {std::string("721h"), std::string("31d"), std::string("0h"),
                             std::string("d"), std::string("soon"), long_text}) {
    const auto r = c.post("/v1/batches", R"({"input_file_id":")" + file +
                                             R"(","endpoint":"/v1/completions",)"
                                             R"("completion_window":")" +
                                             window + "\"}");
    CHECK(r.status == 400);
    CHECK(at(json(r.body), "error", "param") == value("completion_window"));
  }
}

TEST_CASE("Lines of an input file may end as Windows ends them") {
  running_server s({}, options_with(2));
  client c(s.port());
  auto text = line("a");
  text.insert(text.size() - 1, "\r");
  const auto done = wait_status(c, start(c, upload(c, text + " \t\r\n")), "completed");
  CHECK(at(done, "request_counts", "completed") == value(1));
}

TEST_CASE("Stored files and their folder are their owner's alone, whatever the umask") {
  temporary_folder outer;
  const auto folder = outer.path / "new";
  const auto before = ::umask(0);
  {
    net::file_store store(folder.string(), mib);
    REQUIRE(store.put({"", "", "a", "batch", 0, 0}, "text").ok());
  }
  ::umask(before);
  CHECK((fs::status(folder).permissions() & fs::perms::mask) == fs::perms::owner_all);
  int files = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    CHECK((file.status().permissions() & fs::perms::mask) ==
          (fs::perms::owner_read | fs::perms::owner_write));
    ++files;
  }
  CHECK(files == 3); // the file, its description and the lock of the folder
}

TEST_CASE("Multipart bodies are taken apart, and broken ones refused") {
  const std::string body = form("a\r\n--X\r\nb"), empty_body = form(""); // the parts refer to both
  const auto good = net::parse_multipart("multipart/form-data; boundary=\"XX\"", body);
  REQUIRE(good.ok());
  REQUIRE(good.value().size() == 2);
  CHECK(net::find_part(good.value(), "purpose")->data == "batch");
  CHECK(net::find_part(good.value(), "file")->data == "a\r\n--X\r\nb");
  CHECK(net::find_part(good.value(), "file")->filename == "a.jsonl");
  CHECK(net::find_part(good.value(), "other") == nullptr);
  const auto empty = net::parse_multipart("multipart/form-data; boundary=XX", empty_body);
  REQUIRE(empty.ok());
  CHECK(net::find_part(empty.value(), "file")->data.empty());

  CHECK(!net::parse_multipart("application/json", "{}").ok());
  CHECK(!net::parse_multipart("multipart/form-data", form("a")).ok());
  const std::string quoted = "--XX\r\nContent-Disposition: form-data; name=\"file\"; "
                             "filename=\"a \\\"b\\\".jsonl\"\r\n\r\nx\r\n--XX--\r\n";
  const auto escaped = net::parse_multipart("multipart/form-data; boundary=XX", quoted);
  REQUIRE(escaped.ok());
  CHECK(net::find_part(escaped.value(), "file")->filename == "a \"b\".jsonl");
  for (const int n_parts : {64, 65}) { // a limit, since more parts would only cost memory
    std::string many;
    for (int i = 0; i < n_parts; ++i)
      many += "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
    many += "--XX--\r\n";
    CHECK(net::parse_multipart("multipart/form-data; boundary=XX", many).ok() == (n_parts <= 64));
  }
  const auto whole = form("abc");
  for (std::size_t n = 0; n + 4 < whole.size(); ++n) // every cut but the last line end
    CHECK(!net::parse_multipart("multipart/form-data; boundary=XX", whole.substr(0, n)).ok());
}

TEST_CASE("Lines of a batch are read strictly") {
  const auto fault = [](const std::string& text) {
    const auto parsed = net::parse_batch_line(text, "/v1/completions");
    const auto* found = std::get_if<net::batch_fault>(&parsed);
    return found == nullptr ? "none" : found->code + ":" + found->param;
  };
  CHECK(fault(line("a")) == "none");
  CHECK(fault("{") == "invalid_json_line:");
  CHECK(fault("3") == "invalid_json_line:");
  CHECK(fault(line("")) == "invalid_value:custom_id");
  CHECK(fault(line(std::string(600, 'a'))) == "invalid_value:custom_id");
  CHECK(fault(R"({"custom_id":"a","method":"GET","url":"/v1/completions","body":{}})") ==
        "invalid_value:method");
  CHECK(fault(R"({"custom_id":"a","method":"POST","url":"/v1/responses","body":{}})") ==
        "invalid_value:url");
  CHECK(fault(line("a", "[]")) == "invalid_value:body");
}

TEST_CASE("A page of files has as many as `limit` asks for, which must be a whole number") {
  running_server s;
  client c(s.port());
  for (int i = 0; i < 3; ++i)
    upload(c, lines(1));
  for (const char* n : {"1", "2", "3"}) {
    const auto page = json(c.get(std::string("/v1/files?limit=") + n).body);
    CHECK(at(page, "data").as_list()->size() == static_cast<std::size_t>(std::stoi(n)));
  }
  const auto first = json(c.get("/v1/files?limit=2").body);
  CHECK(at(first, "has_more") == value(true));
  const auto next = json(c.get("/v1/files?limit=1&after=" + text_of(at(first, "last_id"))).body);
  CHECK(at(next, "data").as_list()->size() == 1);
  CHECK(at(next, "has_more") == value(false));
  CHECK(at(first, "data", 1, "id") != at(next, "data", 0, "id"));
  CHECK(c.get("/v1/files?after=file-none").status == 400);
  for (const char* wrong : {"0", "-1", "2x", "x", "99999999999999999999"})
    CHECK(c.get(std::string("/v1/files?limit=") + wrong).status == 400);
}
