#include "tools/common/hub/fetch_report.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.hpp"

using twill::tools::hub::fetch_report;
using namespace std::chrono_literals;

// The tests' standard error is a pipe or a file; tests/tools/hub_test.py has a terminal.
TEST_CASE("without a terminal a download is reported in lines now and then", "[hub]") {
  std::vector<std::string> lines;
  const auto collect = [&](const std::string& line) { lines.push_back(line); };
  constexpr std::int64_t total = 100 << 20;
  fetch_report rare(collect, 1h);
  for (std::int64_t done = 0; done <= total; done += 1 << 20)
    rare.show(done, total);
  CHECK(lines.empty());

  fetch_report often(collect, 0ms);
  often.show(1 << 20, 2 << 20); // too small a part to be reported
  CHECK(lines.empty());
  often.show(0, total);
  std::this_thread::sleep_for(20ms);
  often.show(total / 2, total);
  REQUIRE_FALSE(lines.empty());
  CHECK(lines.back().starts_with("fetched 50.0 MiB of 100 MiB, "));
  CHECK(lines.back().ends_with("/s, 0 s left"));
}
