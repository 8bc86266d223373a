// The table of several daemons: its rows, their sum, and how failed queries and restarts change it.
#include "tools/twill/fleet_view.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

#include "tests/catch.hpp"

using namespace twill::tools;

namespace {

fleet_member member(const std::string& url) {
  return fleet_member(parse_endpoint(url));
}

/// A daemon's state as it was queried `seconds` after the first query.
daemon_view look(double seconds, const std::string& name, const std::string& model = "m",
                 const model_load& load = {}) {
  daemon_view view;
  view.name = name;
  view.ready = true;
  view.state = "ready";
  view.models.push_back({model});
  view.loads[model] = load;
  view.at = std::chrono::steady_clock::time_point() +
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                std::chrono::duration<double>(seconds));
  return view;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);)
    lines.push_back(line);
  return lines;
}

/// The text of the first row that begins with `label`, in the numeric column called `title`.
std::string cell(const std::vector<fleet_member>& fleet, const std::string& label,
                 const std::string& title) {
  const auto lines = lines_of(fleet_text(fleet, 250, 0));
  const auto titles = std::find_if(lines.begin(), lines.end(),
                                   [](const auto& line) { return line.starts_with("DAEMON "); });
  const auto row = std::find_if(titles, lines.end(),
                                [&](const auto& line) { return line.starts_with(label + " "); });
  if (row == lines.end()) return "no row";
  auto text = row->substr(0, titles->find(" " + title) + 1 + title.size());
  if (text.ends_with(" %")) text.resize(text.size() - 2);
  return text.substr(text.rfind(' ') + 1);
}

std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

} // namespace

TEST_CASE("A fleet has one row for each daemon and model, and a last one for all") {
  auto a = member("http://10.0.0.1:8080"), b = member("https://b"), c = member("unix:/run/c.sock");
  a.take(look(0, "east", "one"));
  auto two = look(0, "", "one");
  two.loads["two"] = {};
  two.models.push_back({"asleep"});
  b.take(two);
  const auto lines = lines_of(fleet_text({a, b, c}, 250, 0));
  REQUIRE(lines.size() == 9);
  CHECK(lines[0] == "twill top  3 daemons, 2 ready");
  CHECK(lines[2].starts_with("DAEMON "));
  CHECK(lines[3].starts_with("east              ready    one "));
  CHECK(lines[4] == "https://b:443     ready    asleep");
  CHECK(lines[5].starts_with("https://b:443     ready    one "));
  CHECK(lines[6].starts_with("https://b:443     ready    two "));
  CHECK(lines[7] == "unix:/run/c.sock  asking");
  CHECK(lines[8].starts_with("all               2 ready"));
}

TEST_CASE("The sum of a fleet adds counts and rates, and weights means by their counts") {
  auto a = member("a:1"), b = member("b:1");
  model_load load;
  a.take(look(0, "", "m", load));
  b.take(look(0, "", "m", load));
  load = {.running = 2,
          .waiting = 1,
          .kv_used_blocks = 30,
          .kv_blocks = 100,
          .prompt_tokens = 400,
          .generated_tokens = 200,
          .finished = 5,
          .failed = 1,
          .first_token_s = 1,
          .first_tokens = 10,
          .between_s = 0.9,
          .between = 90};
  load.looked_up_tokens = 100;
  load.cached_tokens = 50;
  a.take(look(2, "", "m", load));
  load = {.running = 3,
          .waiting = 4,
          .kv_used_blocks = 0,
          .kv_blocks = 200,
          .prompt_tokens = 100,
          .generated_tokens = 100,
          .finished = 7,
          .failed = 2,
          .first_token_s = 1,
          .first_tokens = 2,
          .between_s = 0.1,
          .between = 10};
  load.looked_up_tokens = 300;
  b.take(look(1, "", "m", load));
  const struct {
    const char *title, *a, *b, *all;
  } columns[] = {{"RUN", "2", "3", "5"},
                 {"WAIT", "1", "4", "5"},
                 {"KV CACHE", "30", "0", "10"},
                 {"OUT/S", "100", "100", "200"},
                 {"IN/S", "200", "100", "300"},
                 {"FIRST ms", "100", "500", "167"},
                 {"NEXT ms", "10.0", "10.0", "10.0"},
                 {"FAILED", "1", "2", "3"},
                 {"ENDED", "5", "7", "12"},
                 {"CACHED %", "50", "0", "12"}};
  for (const auto& column : columns) {
    CAPTURE(column.title);
    CHECK(cell({a, b}, "a:1", column.title) == column.a);
    CHECK(cell({a, b}, "b:1", column.title) == column.b);
    CHECK(cell({a, b}, "all", column.title) == column.all);
  }
}

TEST_CASE("Counters from before a failed look or a restart make no rates") {
  auto one = member("a:1");
  const auto tokens = [](double n) { return model_load{.generated_tokens = n}; };
  const auto rate = [&] { return cell({one}, "all", "OUT/S"); };
  one.take(look(0, "", "m", tokens(1000)));
  CHECK(rate() == "0");
  one.take(look(1, "", "m", tokens(1100)));
  CHECK(rate() == "100");
  one.lose("no answer from a:1: none came in time");
  CHECK(rate() == "0");
  one.take(look(3, "", "m", tokens(9000)));
  CHECK(rate() == "0");
  one.take(look(4, "", "m", tokens(9050)));
  CHECK(rate() == "50");

  SECTION("a counter that fell") {
    auto fell = look(5, "", "m", tokens(9500));
    one.take(look(4.5, "", "m", {.generated_tokens = 9050, .finished = 3}));
    one.take(fell);
    CHECK(rate() == "0");
  }
  SECTION("a model that was loaded at another time") {
    auto later = look(5, "", "m", tokens(9500));
    later.models.front().created_unix_s = 7;
    one.take(later);
    CHECK(rate() == "0");
  }
}

TEST_CASE("A daemon that fails keeps its row and its name, and says why below the table") {
  auto a = member("a:1"), b = member("b:1"), c = member("c:1");
  a.take(look(0, "east", "m", {.running = 7}));
  b.take(look(0, "west", "m", {.running = 2}));
  a.lose("no answer from http://a:1: none came in time");
  c.lose("http://c:1 answers, but not as twilld does", fleet_member::standing::other_server);
  auto draining = look(1, "west", "m", {.running = 2});
  draining.ready = false;
  draining.state = "draining";
  draining.why_not = "the server is shutting down";
  b.take(draining);
  const auto lines = lines_of(fleet_text({a, b, c}, 250, 0));
  REQUIRE(lines.size() == 11);
  CHECK(lines[0] == "twill top  3 daemons, 0 ready");
  CHECK(lines[3] == "east    no answer");
  CHECK(lines[4].starts_with("west    draining   m "));
  CHECK(lines[5] == "c:1     no twilld");
  CHECK(lines[8] == "east: no answer from http://a:1: none came in time");
  CHECK(lines[9] == "west: the server is shutting down");
  CHECK(lines[10] == "c:1: http://c:1 answers, but not as twilld does");
  CHECK(cell({a, b, c}, "all", "RUN") == "2");
}

TEST_CASE("Two daemons of one name are shown by their addresses") {
  auto a = member("http://proxy/a"), b = member("http://proxy/b/v1"), c = member("c:1");
  a.take(look(0, "same"));
  b.take(look(0, "same"));
  c.take(look(0, "other"));
  const auto lines = lines_of(fleet_text({a, b, c}, 250, 0));
  CHECK(lines[3].starts_with("proxy:80/a "));
  CHECK(lines[4].starts_with("proxy:80/b "));
  CHECK(lines[5].starts_with("other "));
}

TEST_CASE("What a daemon says of itself cannot add lines or reach the terminal") {
  auto one = member("a:1");
  auto evil = look(0, "a\n\x1b[2J", "b\nc\td");
  evil.state = "ready";
  evil.why_not = "no\n\x1b]0;x\a" + std::string(100000, 'x');
  evil.loads["nan"] = {.running = std::nan(""), .kv_used_blocks = std::nan(""), .kv_blocks = 1};
  evil.loads["inf"] = {.kv_used_blocks = INFINITY, .kv_blocks = 1};
  evil.loads[std::string(100000, 'y')] = {};
  one.take(evil);
  one.take(evil);
  const auto text = fleet_text({one}, 400, 0);
  CHECK(text.find_first_of("\x1b\t\a") == text.npos);
  const auto lines = lines_of(text);
  CHECK(lines[3].starts_with("a \xef\xbf\xbd[2J"));
  CHECK(text.size() < 5000);
}

TEST_CASE("A fleet fits into any terminal, with its sum in those of a few lines") {
  std::mt19937 random(11);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int i = 0; i < 500; ++i) {
    std::vector<fleet_member> fleet;
    const auto size = 2 + below(30);
    for (std::size_t n = 0; n < size; ++n) {
      fleet.push_back(member("host-" + std::to_string(n) + std::string(below(20), 'x') + ":8080"));
      if (below(4) == 0) fleet.back().lose("no answer: " + std::string(below(300), 'w'));
      if (below(2) != 0) continue;
      auto view = look(0, below(2) == 0 ? "" : "name-" + std::to_string(n));
      for (auto models = below(4); models > 0; --models)
        view.loads["model-" + std::to_string(models)].running = static_cast<double>(random());
      fleet.back().take(std::move(view));
    }
    const auto columns = 20 + below(150), most = below(3) == 0 ? 0 : 1 + below(40);
    const auto lines = lines_of(fleet_text(fleet, columns, most));
    CAPTURE(size, columns, most);
    for (const auto& line : lines)
      CHECK(width(line) <= columns);
    if (most > 0) CHECK(lines.size() <= most);
    const bool has_sum = std::any_of(lines.begin(), lines.end(),
                                     [](const auto& line) { return line.starts_with("all"); });
    if (most == 0 || most > 5) CHECK(has_sum);
  }
}
