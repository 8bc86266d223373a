// The parts that all reports of twill-bench share: the list of figures, the warnings, and the table
// of runs side by side.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tools/twill-bench/report/side_by_side.hpp"
#include "tools/twill-bench/runs/doubts.hpp"
#include "tools/twill-bench/runs/figures.hpp"
#include "tools/twill-bench/runs/sweep_file.hpp"
#include "tools/twill-bench/runs/sweep_report.hpp"

using namespace twill::bench;

namespace {

/// Figures of which no two are alike.
run_figures distinct() {
  run_figures out;
  out.asked = 1;
  out.completed = 2;
  out.failed = 3;
  out.stopped_early = 4;
  out.context_limited = 5;
  out.counted_lengths = 6;
  out.input_mismatches = 7;
  out.concurrency = 8;
  out.duration_s = 9;
  out.input_tokens = 10;
  out.output_tokens = 11;
  out.requests_per_s = 12;
  out.output_tokens_per_s = 13;
  out.total_tokens_per_s = 14;
  out.ms_per_token = 15;
  out.ms_per_output_token = 16;
  out.mean_ttft_ms = 17;
  out.median_ttft_ms = 18;
  out.p99_ttft_ms = 19;
  out.mean_tpot_ms = 20;
  out.median_tpot_ms = 21;
  out.p99_tpot_ms = 22;
  out.mean_itl_ms = 23;
  out.median_itl_ms = 24;
  out.p99_itl_ms = 25;
  out.mean_e2el_ms = 26;
  out.median_e2el_ms = 27;
  out.p99_e2el_ms = 28;
  out.client_cpu_share = 29;
  return out;
}

sweep with_one_phase(const run_figures& figures) {
  sweep out;
  out.cells.emplace_back();
  out.cells[0].input_tokens = 128;
  out.cells[0].output_tokens = 64;
  out.cells[0].latency = figures;
  return out;
}

/// The text of a table with one row, without its heading.
std::string row_of(side_by_side table, side_row row) {
  table.labels = {""};
  row.labels = {"x"};
  table.rows = {std::move(row)};
  const std::string text = side_by_side_markdown(table);
  return text.substr(text.find("| x"));
}

} // namespace

TEST_CASE("every figure of a sweep has its key and its CSV column") {
  CHECK(sweep_csv(with_one_phase(distinct())) ==
        "input_len,output_len,phase,requests,completed,failed,stopped_early,context_limited,"
        "concurrency,duration_s,mean_input_tokens,mean_output_tokens,request_throughput,"
        "output_throughput,mean_latency_per_token_ms,mean_latency_per_output_token_ms,"
        "mean_ttft_ms,median_ttft_ms,p99_ttft_ms,mean_tpot_ms,median_tpot_ms,p99_tpot_ms,"
        "mean_itl_ms,median_itl_ms,p99_itl_ms,mean_e2el_ms,median_e2el_ms,p99_e2el_ms\n"
        "128,64,latency,1,2,3,4,5,8,9.0000,10.0000,11.0000,12.0000,13.0000,15.0000,16.0000,"
        "17.0000,18.0000,19.0000,20.0000,21.0000,22.0000,23.0000,24.0000,25.0000,26.0000,27.0000,"
        "28.0000\n");
  const std::string json = sweep_json(with_one_phase(distinct()));
  CHECK(json.find(R"("latency":{"asked":1,"completed":2,"failed":3,"stopped_early":4,)"
                  R"("context_limited":5,"lengths_counted_here":6,"input_mismatches":7,)"
                  R"("concurrency":8,"duration":9,"mean_input_tokens":10,"mean_output_tokens":11,)"
                  R"("request_throughput":12,"output_throughput":13,"total_token_throughput":14,)"
                  R"("mean_latency_per_token_ms":15,"mean_latency_per_output_token_ms":16,)"
                  R"("mean_ttft_ms":17,"median_ttft_ms":18,"p99_ttft_ms":19,"mean_tpot_ms":20,)"
                  R"("median_tpot_ms":21,"p99_tpot_ms":22,"mean_itl_ms":23,"median_itl_ms":24,)"
                  R"("p99_itl_ms":25,"mean_e2el_ms":26,"median_e2el_ms":27,"p99_e2el_ms":28,)"
                  R"("client_cpu_share":29,"first_error":""})") != std::string::npos);
  for (const figure_entry& each : all_figures()) {
    const std::string key = each.key;
    CHECK(each.more_is_better == (key.find("throughput") != std::string::npos));
  }
}

TEST_CASE("a sweep's file without the total throughput gets it from its other figures") {
  std::string text = sweep_json(with_one_phase(distinct()));
  const std::string key = R"("total_token_throughput":14,)";
  REQUIRE(text.find(key) != std::string::npos);
  text.erase(text.find(key), key.size());
  CHECK(read_sweep(text, "old").cells[0].latency->total_tokens_per_s == 12 * (10 + 11));
}

TEST_CASE("mean output lengths differ beyond 2 %") {
  CHECK_FALSE(lengths_differ(100, 98.1));
  CHECK_FALSE(lengths_differ(98.1, 100));
  CHECK(lengths_differ(100, 97.9));
  CHECK(lengths_differ(97.9, 100));
  CHECK_FALSE(lengths_differ(0, 0));
}

TEST_CASE("figures come with all that makes them doubtful") {
  run_figures first, second;
  first.completed = second.completed = 5;
  CHECK(doubts_about(total_of({&first, &second}), true).empty());
  first.failed = 2;
  first.first_error = "a";
  second.first_error = "b";
  first.stopped_early = 1;
  second.stopped_early = 3;
  second.context_limited = 5;
  second.counted_lengths = 6;
  first.input_mismatches = 7;
  first.client_cpu_share = 0.9;
  second.client_cpu_share = 0.3;
  const run_figures total = total_of({&first, &second});
  CHECK(doubts_about(total, true) ==
        std::vector<std::string>{
            "ignore_eos was NOT honoured: 4 of 10 requests stopped early; requests/s do not "
            "compare with full-length runs.",
            "5 of 10 requests were cut below the length asked for.",
            "2 requests failed; the first error: a",
            "The server gave no usage in 6 of 10 requests: output lengths were counted from "
            "chunks.",
            "The server counted another prompt length than was sent in 7 of 10 requests (special "
            "or template tokens).",
            "The client was busy: an I/O thread used 90 % of a core."});
  CHECK(doubts_about(total, false)[0] == "4 of 10 requests stopped before the length asked for.");
  run_figures idle;
  idle.client_cpu_share = 0.8;
  CHECK(doubts_about(idle, true).empty());
}

TEST_CASE("ratios of runs side by side are those of each round, or absent") {
  side_by_side table;
  table.runs = {{"a"}, {"b"}};
  CHECK(row_of(table, {{}, {{{2}}, {{5}}}}) == "| x | 2.00 | 5.00 | 2.50 |\n");
  CHECK(row_of(table, {{}, {{{0}}, {{5}}}}) == "| x | 0.00 | 5.00 | |\n");
  CHECK(row_of(table, {{}, {{{5}}, {{0}}}}) == "| x | 5.00 | 0.00 | 0.00 |\n");
  CHECK(row_of(table, {{}, {{{}, "failed"}, {{5}}}}) == "| x | failed | 5.00 | |\n");
  CHECK(row_of(table, {{}, {{{5}}, {{}, "skipped"}}}) == "| x | 5.00 | skipped | |\n");
  CHECK(row_of(table, {{}, {{{5}}, {{6}, "", "no"}}}) == "| x | 5.00 | 6.00 | no |\n");
  CHECK(row_of(table, {{}, {{{1, 2, 4}}, {{3, 8}}}}) ==
        "| x | 2.00 (1.00 to 4.00) | 5.50 (3.00 to 8.00) | 3.50 (3.00 to 4.00) |\n");
  CHECK(row_of(table, {{}, {{{1, 0}}, {{3, 8}}}}) ==
        "| x | 0.50 (0.00 to 1.00) | 5.50 (3.00 to 8.00) | |\n");
  table.ratio = ratio_kind::first_better_by;
  CHECK(row_of(table, {{}, {{{5}}, {{2}}}, true}) == "| x | 5.00 | 2.00 | 2.50 |\n");
  CHECK(row_of(table, {{}, {{{2}}, {{5}}}, false}) == "| x | 2.00 | 5.00 | 2.50 |\n");
  CHECK(row_of(table, {{}, {{{0}}, {{5}}}, true}) == "| x | 0.00 | 5.00 | |\n");
  table.runs[1].has_ratio = false;
  CHECK(row_of(table, {{}, {{{2}}, {{5}}}}) == "| x | 2.00 | 5.00 |\n");
}

TEST_CASE("a table of runs side by side names its ratios and aligns numbers right") {
  side_by_side table;
  table.labels = {"what"};
  table.runs = {{"a"}, {"b"}, {"as published", false}};
  CHECK(side_by_side_markdown(table) == "| what | a | b | / a | as published |\n"
                                        "| :--- | ---: | ---: | ---: | ---: |\n");
  table.labels_are_numbers = true;
  table.ratio = ratio_kind::first_better_by;
  CHECK(side_by_side_markdown(table) == "| what | a | b | a better by | as published |\n"
                                        "| ---: | ---: | ---: | ---: | ---: |\n");
}
