// twill-bench versus: its plan file, its child programs, its report.
#include <chrono>
#include <filesystem>
#include <string>

#include <csignal>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/child.hpp"
#include "tools/twill-bench/runs/plan.hpp"
#include "tools/twill-bench/runs/versus_report.hpp"

using namespace twill::bench;
using namespace std::chrono_literals;

namespace {

struct scratch_file {
  std::string path = (std::filesystem::temp_directory_path() /
                      ("twill-bench-versus-test-" + std::to_string(getpid())))
                         .string();
  explicit scratch_file(const std::string& contents) { write_file(path, contents); }
  ~scratch_file() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

const std::string servers = R"(
[[server]]
name = "a"
command = ["prog", "--port", "1"]
base_url = "http://127.0.0.1:1"
backend = "twill-stream"
environment = { THREADS = "2" }
[[server]]
name = "b"
command = "exec prog $HOME"
base_url = "http://127.0.0.1:2"
ready_url = "http://127.0.0.1:2/ready"
ready_timeout_s = 300
)";
const std::string load = R"(
[[load]]
name = "decode"
input_tokens = 128
output_tokens = 64
num_prompts = 4
busy_processes = 2
)";

std::string error_of(const std::string& text) {
  const scratch_file file(text);
  try {
    read_plan(file.path, plan_kind::versus);
  } catch (const std::runtime_error& error) {
    return std::string(error.what()).substr(file.path.size());
  }
  return "none";
}

child_order shell(const std::string& text) {
  child_order out;
  out.command = {"/bin/sh", "-c", text};
  out.log_path = "/dev/null";
  return out;
}

} // namespace

TEST_CASE("a plan names its servers and loads") {
  const scratch_file file("rounds = 3\n" + servers + load);
  const run_plan plan = read_plan(file.path, plan_kind::versus);
  CHECK(plan.rounds == 3);
  CHECK(plan.restart);
  REQUIRE(plan.servers.size() == 2);
  CHECK(plan.servers[0].order.command == std::vector<std::string>{"prog", "--port", "1"});
  CHECK(plan.servers[0].order.environment[0] ==
        std::pair<std::string, std::string>("THREADS", "2"));
  CHECK(plan.servers[0].ready_url == "http://127.0.0.1:1/health");
  CHECK(plan.servers[1].order.command ==
        std::vector<std::string>{"/bin/sh", "-c", "exec prog $HOME"});
  CHECK(plan.servers[1].ready_timeout.count() == 300);
  REQUIRE(plan.loads.size() == 1);
  CHECK(plan.loads[0].load.output_tokens == 64);
  CHECK(plan.loads[0].load.ignore_eos);
  CHECK(plan.loads[0].busy_processes == 2);
}

TEST_CASE("a wrong plan is refused with its line") {
  CHECK(error_of(servers + load + "nonsense = 1\n") == ":21: nonsense is not a known key");
  CHECK(error_of(servers) == ":1: load must be given at least once");
  CHECK(error_of("rounds = 0\n" + servers + load) == ":1: rounds must be >= 1, got 0");
  CHECK(error_of("rounds = 'x'\n" + servers + load) == ":1: rounds has the wrong type");
  CHECK(error_of("rounds =").substr(0, 3) == ":1:");
  CHECK(error_of("[[server]]\nname = 'a'\n").find("command must be given") != std::string::npos);
}

TEST_CASE("a child ends with its group, killed only when it will not") {
  {
    child willing(shell("sleep 100 & wait"));
    CHECK(willing.running());
    CHECK(willing.end());
    CHECK_FALSE(willing.running());
    CHECK(willing.exit_status() == 128 + SIGTERM);
  }
  const scratch_file marker("");
  child_order stubborn =
      shell("trap '' TERM; echo deaf > " + marker.path + "; while :; do sleep 0.1; done");
  stubborn.grace = 300ms;
  child program(stubborn);
  for (int turn = 0; turn < 200 && read_file(marker.path).empty(); ++turn)
    CHECK_FALSE(program.wait_for_end(50ms));
  CHECK_FALSE(program.end());
  CHECK(program.exit_status() == 128 + SIGKILL);

  child_order with_environment = shell("exit $CODE");
  with_environment.environment = {{"CODE", "7"}};
  child short_lived(with_environment);
  CHECK(short_lived.wait_for_end(5s));
  CHECK(short_lived.exit_status() == 7);
  child_order absent;
  absent.command = {"/nonexistent/program"};
  absent.log_path = "/dev/null";
  CHECK_THROWS_AS(child(absent), std::runtime_error);
}

TEST_CASE("a campaign's models take from the plan what they don't say themselves") {
  const scratch_file file("input_lens = [4]\nprepare = \"make it\"\n"
                          "[[model]]\nname = \"a\"\n"
                          "[[model]]\nname = \"b\"\nprepare = \"fetch it\"\ninput_lens = [8]\n"
                          "[[model]]\nname = \"c\"\nprepare = \"\"\n" +
                          servers);
  const run_plan plan = read_plan(file.path, plan_kind::campaign);
  REQUIRE(plan.models.size() == 3);
  CHECK(plan.models[0].prepare == "make it");
  CHECK(plan.models[1].prepare == "fetch it");
  CHECK(plan.models[2].prepare.empty());
  CHECK(plan.models[0].grid.input_lengths == std::vector<std::int32_t>{4});
  CHECK(plan.models[1].grid.input_lengths == std::vector<std::int32_t>{8});
}

TEST_CASE("a report has medians and by how much the first is better") {
  const scratch_file file(servers + load);
  const run_plan plan = read_plan(file.path, plan_kind::versus);
  versus_result result;
  result.rounds.resize(1);
  result.rounds[0].resize(2);
  result.starts = {{{0.1, 0.2}}, {{0.3, 0.4}}};
  for (const double drift : {1.0, 2.0, 4.0}) { // each round slows both servers alike
    run_figures a, b;
    a.completed = b.completed = 4;
    a.output_tokens = b.output_tokens = 64;
    a.output_tokens_per_s = 300 / drift;
    b.output_tokens_per_s = 100 / drift;
    a.median_ttft_ms = 10 * drift;
    b.median_ttft_ms = 15 * drift;
    result.rounds[0][0].push_back(a);
    result.rounds[0][1].push_back(b);
  }
  const std::string text = versus_markdown(plan, result);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has("| Output token throughput (tok/s) | 150.00 (75.00 to 300.00) | 50.00 (25.00 to "
            "100.00) | 3.00 (3.00 to 3.00) |"));
  CHECK(has("| Median TTFT (ms) | 20.00 (10.00 to 40.00) | 30.00 (15.00 to 60.00) | 1.50 (1.50 to "
            "1.50) |"));
  CHECK(has("| ready (s) | 0.10 | 0.30 | 3.00 |")); // measured once
  CHECK(has("4 requests, 128 tokens in, 64 out, 1 at once, beside 2 busy processes"));
  CHECK_FALSE(has("WARNING"));
  CHECK(versus_json(plan, result).find("\"twill_bench_versus\":1") != std::string::npos);
  for (run_figures& each : result.rounds[0][1]) {
    each.output_tokens = 30;
    each.failed = each.stopped_early = 1;
    each.first_error = "http_500: no";
  }
  const std::string doubtful = versus_markdown(plan, result);
  for (const char* warning : {"mean output lengths differ by over 2 %: requests/s do not compare",
                              "b: ignore_eos was NOT honoured: 3 of 12 requests stopped early",
                              "b: 3 requests failed; the first error: http_500: no"})
    CHECK(doubtful.find(std::string("- WARNING: ") + warning) != std::string::npos);
}
