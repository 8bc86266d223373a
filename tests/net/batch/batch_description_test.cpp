// Batch descriptions as text and back, and texts that are not batch descriptions.
#include <random>

#include "net/batch/batch_description.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::testing;

namespace {

net::batch some_batch() {
  net::batch b;
  b.id = "batch_east.00112233445566778899aabb";
  b.number = 17;
  b.tenant = "key \"quoted\"\n";
  b.endpoint = "/v1/chat/completions";
  b.input_file_id = "file-east.000000000000000000000001";
  b.completion_window = "24h";
  b.metadata = value_object{{"job", "\u00e4"}, {"empty", ""}};
  b.status = net::batch_status::in_progress;
  for (std::size_t i = 0; i < net::n_batch_statuses; ++i)
    b.reached_unix_s[i] = static_cast<std::int64_t>(1000 + i);
  b.expires_unix_s = 5000;
  b.total = 9;
  b.completed = 5;
  b.failed = 2;
  b.output_under_way = "file-east.000000000000000000000002";
  b.errors_under_way = "file-east.000000000000000000000003";
  b.faults = {{"code", "message", "param", 3}, {"other", "", "", 0}};
  return b;
}

/// The description with one member changed; removed where `to` is none.
std::string with_member(const std::string& name, const std::optional<value>& to) {
  auto members = *json(net::describe_batch(some_batch())).as_object();
  std::erase_if(members, [&](const auto& one) { return one.first == name && !to; });
  for (auto& one : members)
    if (one.first == name) one.second = *to;
  return net::json_text(members);
}

std::string why_not(const std::string& text) {
  const auto read = net::read_description(text);
  return read.ok() ? "" : read.code().message;
}

} // namespace

TEST_CASE("A batch is read as it was described") {
  const auto before = some_batch();
  const auto text = net::describe_batch(before);
  const auto read = net::read_description(text);
  REQUIRE(read.ok());
  CHECK(net::describe_batch(read.value()) == text);
  const auto& b = read.value();
  CHECK(net::batch_json(b) == net::batch_json(before));
  CHECK(b.tenant == before.tenant);
  CHECK(b.number == before.number);
  CHECK(b.metadata == before.metadata);
  CHECK(b.reached_unix_s == before.reached_unix_s);
  CHECK(b.output_under_way == before.output_under_way);
  CHECK(b.errors_under_way == before.errors_under_way);
  CHECK(b.faults.size() == 2);
  CHECK(net::read_description(net::describe_batch([] {
          auto plain = some_batch();
          plain.metadata = value();
          plain.output_under_way.clear();
          plain.errors_under_way.clear();
          plain.output_file_id = "file-1";
          return plain;
        }()))
            .ok());
}

TEST_CASE("Every status is read by its name") {
  for (std::size_t i = 0; i < net::n_batch_statuses; ++i) {
    auto b = some_batch();
    b.status = static_cast<net::batch_status>(i);
    const auto read = net::read_description(net::describe_batch(b));
    REQUIRE(read.ok());
    CHECK(read.value().status == b.status);
  }
}

TEST_CASE("A description that is cut off anywhere is none") {
  const auto text = net::describe_batch(some_batch());
  for (std::size_t n = 0; n < text.size(); ++n)
    CHECK_FALSE(net::read_description(text.substr(0, n)).ok());
}

TEST_CASE("A description with a member that does harm is none, and says which") {
  const auto all = json(net::describe_batch(some_batch()));
  for (const auto& [name, member] : *all.as_object()) {
    INFO(name);
    if (name != "metadata") CHECK(contains(why_not(with_member(name, std::nullopt)), "`" + name));
    CHECK(contains(why_not(with_member(name, value(true))), "`" + name));
    CHECK(contains(why_not(with_member(name, value(-1))), "`" + name));
  }
  for (const auto* name : {"id", "input_file_id", "output_under_way", "error_file_id"})
    for (const auto* path :
         {"../x", "file-../x", "batch_/x", "batch_", "file-", "x", "file-a b", "batch_\n"})
      CHECK(contains(why_not(with_member(name, value(path))), std::string("`") + name));
  CHECK(contains(why_not(with_member("id", value("batch_" + std::string(97, 'x')))), "`id`"));
  CHECK(contains(why_not(with_member("endpoint", value("/v1/models"))), "`endpoint`"));
  CHECK(contains(why_not(with_member("endpoint", value("/v1/moderations"))), "`endpoint`"));
  CHECK(contains(why_not(with_member("status", value("done"))), "`status`"));
  CHECK(contains(why_not(with_member("version", value(2))), "`version`"));
  CHECK(contains(why_not(with_member("expires_at", value(9e18))), "`expires_at`"));
  CHECK(contains(why_not(with_member("total", value(1.5))), "`total`"));
  CHECK(contains(why_not(with_member("reached", value(value_object{{"validating", 1}}))),
                 "`reached.in_progress`"));
  CHECK(contains(why_not(with_member("faults", value(value_list{value(1)}))), "`faults`"));
  for (const auto* id : {"file-east.000000000000000000000001", // the input file
                         "file-east.000000000000000000000003"})
    CHECK(contains(why_not(with_member("output_under_way", value(id))), "another file"));
  CHECK_FALSE(why_not("").empty());
  CHECK_FALSE(why_not("[]").empty());
  CHECK_FALSE(why_not(std::string(100'000, '[')).empty());
}

TEST_CASE("Changed bytes of a description give none, or one that keeps the rules") {
  const auto text = net::describe_batch(some_batch());
  std::mt19937 dice(5);
  for (int n = 0; n < 5000; ++n) {
    auto changed = text;
    for (auto times = 1 + dice() % 3; times > 0; --times)
      changed[dice() % changed.size()] = static_cast<char>(dice() % 256);
    const auto read = net::read_description(changed);
    if (!read.ok()) continue;
    CHECK(net::is_id(read.value().id, "batch_"));
    CHECK(net::is_id(read.value().input_file_id, "file-"));
    CHECK(read.value().total >= 0);
    CHECK(net::read_description(net::describe_batch(read.value())).ok());
  }
}
