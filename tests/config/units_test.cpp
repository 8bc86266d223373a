#include "config/base/fault_log.hpp"
#include "config/base/ip_network.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "tests/catch.hpp"

using namespace twill;

TEST_CASE("byte counts are read in binary and decimal units", "[config]") {
  CHECK(parse_bytes("0") == 0);
  CHECK(parse_bytes("4096") == 4096);
  CHECK(parse_bytes("512 MiB") == 512 * mib);
  CHECK(parse_bytes("2GiB") == 2 * gib);
  CHECK(parse_bytes("1.5 GB") == 1'500'000'000);
  CHECK(parse_bytes(" 8k ") == 8 * kib);
}

TEST_CASE("text that is no byte count is refused", "[config]") {
  for (const char* text :
       {"", "-1", "GiB", "1 parsec", "nan", "inf", "1e400", "9999999 TiB", "1 2"})
    CHECK_FALSE(parse_bytes(text).has_value());
}

TEST_CASE("byte counts print with a unit a person can read", "[config]") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1536) == "1.50 KiB");
  CHECK(format_bytes(3 * gib / 2) == "1.50 GiB");
}

TEST_CASE("times are read with their units", "[config]") {
  using namespace std::chrono_literals;
  CHECK(parse_duration("500ms") == 500ms);
  CHECK(parse_duration("30s") == 30s);
  CHECK(parse_duration("1.5 s") == 1500ms);
  CHECK(parse_duration("5m") == 5min);
  CHECK(parse_duration("2h") == 2h);
  for (const char* text : {"", "30", "-1s", "s", "5 days", "nan s", "1e300h", "99999999999h"})
    CHECK_FALSE(parse_duration(text).has_value());
}

TEST_CASE("log lines cannot be forged by control characters", "[config]") {
  CHECK(log::escape_controls("a\nb\x1b[31m\x7f\tc") == "a\\x0ab\\x1b[31m\\x7f\\x09c");
  CHECK(log::escape_controls("plain \xc3\xa9") == "plain \xc3\xa9");
}

TEST_CASE("addresses and networks are read and compared", "[config]") {
  const auto holds = [](const char* network, const char* address) {
    return ip_network::parse(network)->contains(*ip_address::parse(address));
  };
  CHECK(holds("10.0.0.0/8", "10.255.0.1"));
  CHECK_FALSE(holds("10.0.0.0/8", "11.0.0.1"));
  CHECK(holds("10.0.0.0/9", "10.127.0.1"));
  CHECK_FALSE(holds("10.0.0.0/9", "10.128.0.1"));
  CHECK(holds("10.0.0.1", "::ffff:10.0.0.1"));
  CHECK(holds("0.0.0.0/0", "1.2.3.4"));
  CHECK_FALSE(holds("0.0.0.0/0", "::1"));
  CHECK(holds("2001:db8::/32", "2001:db8:1::1"));
  CHECK_FALSE(holds("2001:db8::/32", "2001:db9::1"));
  CHECK(holds("::1", "[::1]"));
  for (const char* bad :
       {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "::1/129", "x"})
    CHECK_FALSE(ip_network::parse(bad).has_value());
  CHECK(ip_address::parse("127.9.9.9")->is_loopback());
  CHECK(ip_address::parse("::1")->is_loopback());
  CHECK_FALSE(ip_address::parse("::2")->is_loopback());
  CHECK(ip_address::parse("::ffff:1.2.3.4")->text() == "1.2.3.4");
}

TEST_CASE("any bytes become a JSON string in the log", "[config]") {
  const auto json = [](std::string_view text) {
    std::string out;
    log::append_json_string(out, text);
    return out;
  };
  CHECK(json("a\"\\\n\x7f") == R"("a\"\\\u000a\u007f")");
  CHECK(json("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") == "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
  CHECK(json("\xff") == R"("\u00ff")");
  CHECK(json("\xc3") == R"("\u00c3")");
  CHECK(json("\xc0\xaf") == R"("\u00c0\u00af")");
  CHECK(json("\xed\xa0\x80") == R"("\u00ed\u00a0\u0080")");
}

TEST_CASE("the log keeps its last warnings and errors, each once", "[config]") {
  log::fault_log faults;
  for (std::size_t i = 0; i < 3 * log::kept_faults; ++i)
    faults.add(false, "fault " + std::to_string(i), 1);
  CHECK(faults.changed_after(0).size() == log::kept_faults);
  const auto last = faults.changed_after(0).back();
  CHECK(last.message == "fault 599");
  CHECK(faults.changed_after(last.version).empty());
  faults.add(false, "fault 599", 2);
  const auto again = faults.changed_after(last.version);
  REQUIRE(again.size() == 1);
  CHECK(again[0].id == last.id);
  CHECK(again[0].times == 2);
  faults.add(true, "fault 599", 2); // an error is counted apart from an equal warning
  CHECK(faults.changed_after(last.version).size() == 2);
  faults.add(true, std::string(log::fault_bytes - 4, 'x') + "\xc3\xa9" + "yyy", 3);
  const auto cut = faults.changed_after(again[0].version + 1).back().message;
  CHECK(cut == std::string(log::fault_bytes - 4, 'x') + "...");
}

TEST_CASE("warnings and errors are kept whatever the least level of the log is", "[config]") {
  const auto kept = log::faults().changed_after(0);
  const std::uint64_t before = kept.empty() ? 0 : kept.back().version;
  log::configure(log::level::off);
  log::info("not kept");
  log::warn("a warning that is kept");
  log::configure(log::level::info);
  const auto changed = log::faults().changed_after(before);
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].message == "a warning that is kept");
  CHECK_FALSE(changed[0].is_error);
  CHECK(changed[0].at_unix_ms > 0);
}
