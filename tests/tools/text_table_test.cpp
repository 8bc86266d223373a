// Tables for terminals: how names and columns are shortened if there is too little room.
#include "tools/twill/text_table.hpp"

#include <random>

#include "tests/catch.hpp"

using namespace twill::tools;

namespace {

std::size_t width(const std::string& text) {
  std::size_t n = 0;
  for (const char c : text)
    n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return n;
}

std::vector<table_column> numbers() {
  return {{"MODEL", "", {"a-rather-long-name-of-a-model", "b"}, {}, true},
          {"KV CACHE", "KV", {"[....] 5 %", "[....] 50 %"}, {"5 %", "50 %"}},
          {"OUT/S", "", {"1", "200000"}, {}},
          {"FAILED", "", {"0", "7"}, {}}};
}

} // namespace

TEST_CASE("A table with room shows all of it, numbers under their titles") {
  const auto lines = fit_table(numbers(), 200);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "MODEL                             KV CACHE   OUT/S  FAILED");
  CHECK(lines[1] == "a-rather-long-name-of-a-model   [....] 5 %       1       0");
  CHECK(lines[2] == "b                              [....] 50 %  200000       7");
}

TEST_CASE("A narrow table cuts names, then bars, then says which columns are left out") {
  CHECK(fit_table(numbers(), 50)[1] == "a-rather-long-name...   [....] 5 %       1       0");
  CHECK(fit_table(numbers(), 32)[0] == "MODEL           KV  OUT/S FAILED");
  CHECK(fit_table(numbers(), 32)[1] == "a-rather-l...  5 %      1      0");
  const auto lines = fit_table(numbers(), 25);
  CHECK(lines[0] == "MODEL          KV  OUT/S");
  CHECK(lines[3] == "a terminal of 31 columns");
  CHECK(lines[4] == "  shows FAILED too");
}

TEST_CASE("Names that are to be kept apart are cut no further than that") {
  std::vector<table_column> columns{
      {"DAEMON",
       "",
       {"worker-1.cluster.internal:80", "worker-12.cluster.internal:80", "east"},
       {},
       true,
       true},
      {"MODEL", "", {"a-rather-long-name", "a-rather-long-twin", ""}, {}, true}};
  auto lines = fit_table(columns, 26);
  CHECK(lines[1] == "worker-1....  a-rather-...");
  CHECK(lines[2] == "worker-12...  a-rather-...");
  columns[0].cells = {"127.0.0.1:18231", "127.0.0.1:18232", "127.0.0.1:1"};
  lines = fit_table(columns, 31);
  CHECK(lines[1] == "127.0.0.1:18231  a-rather-lo...");
  CHECK(lines[3] == "127.0.0.1:1");
}

TEST_CASE("No line is longer than the room, whatever names and numbers are") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int i = 0; i < 2000; ++i) {
    std::vector<table_column> columns(1 + below(8));
    const std::size_t rows = below(4), room = 1 + below(150);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].is_name = c == 0 || below(4) == 0;
      columns[c].keeps_apart = below(2) == 0;
      columns[c].title = std::string(1 + below(9), 'T');
      for (std::size_t r = 0; r < rows; ++r) {
        std::string cell;
        for (std::size_t n = below(40); n > 0; --n)
          cell += below(3) == 0 ? "ä" : "x";
        columns[c].cells.push_back(cell);
      }
    }
    for (const auto& line : fit_table(columns, room))
      REQUIRE(width(line) <= std::max<std::size_t>(room, 9)); // a title is not cut
    for (const auto& line : wrap_line(columns[0].title + " words that go on ä and on", room))
      REQUIRE(width(line) <= std::max<std::size_t>(room, 3));
  }
}

TEST_CASE("A line is broken at spaces where there are any") {
  CHECK(wrap_line("memory: 5 GiB", 80) == std::vector<std::string>{"memory: 5 GiB"});
  CHECK(wrap_line("memory: 5 GiB of 7", 10) == std::vector<std::string>{"memory: 5", "  GiB of 7"});
  CHECK(wrap_line("abcdef", 4) == std::vector<std::string>{"abcd", "  ef"});
  CHECK(wrap_line("", 4) == std::vector<std::string>{""});
}
