#include <algorithm>
#include <cmath>
#include <map>

#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {
namespace {

/// Above these limits the client, not the server, may have determined the figures.
constexpr double busy_cpu_share = 0.8;
constexpr double late_ms = 5.0;

std::string listed(const std::map<std::string, std::size_t>& counts) {
  std::string out;
  for (const auto& [name, n] : counts)
    out += (out.empty() ? "" : ", ") + name + " " + std::to_string(n);
  return out;
}

void remark_lengths(const report_input& in, std::vector<std::string>& out) {
  const serve_metrics& m = in.metrics;
  const auto of_all = " of " + std::to_string(m.completed) + " requests";
  out.push_back("finish reasons: " + listed(m.finish_reasons));
  if (in.options.ignore_eos)
    out.push_back(m.stopped_early == 0
                      ? "ignore_eos: honoured, no request stopped early"
                      : "WARNING: ignore_eos was NOT honoured: " + std::to_string(m.stopped_early) +
                            of_all + " stopped early");
  else if (m.stopped_early > 0)
    out.push_back(std::to_string(m.stopped_early) + of_all +
                  " stopped before the length asked for; every figure uses actual lengths");
  if (m.context_limited > 0)
    out.push_back("WARNING: " + std::to_string(m.context_limited) + of_all +
                  " were cut below the length asked for (context limit?)");
  if (m.counted_lengths > 0)
    out.push_back("WARNING: no usage from the server in " + std::to_string(m.counted_lengths) +
                  of_all + ": output lengths were counted from chunks");
  if (m.input_mismatches > 0)
    out.push_back("the server's prompt length differs from the one asked for in " +
                  std::to_string(m.input_mismatches) + of_all + " (special or template tokens)");
}

/// Whether a request was sent as ids and its reply brought tokens but no ids.
bool answers_unknown(const run_outcome& run) {
  return std::any_of(run.records.begin(), run.records.end(), [](const record& one) {
    return one.how == outcome::completed && one.asked_in_ids && one.ids.empty() &&
           one.output_tokens > 0;
  });
}

void remark_errors(const report_input& in, std::vector<std::string>& out) {
  if (in.metrics.failed == 0) return;
  out.push_back("WARNING: failed requests by kind: " + listed(in.metrics.error_kinds));
  const auto& records = in.run.records;
  const auto first = std::find_if(records.begin(), records.end(),
                                  [](const record& r) { return r.how == outcome::failed; });
  out.push_back("first error: " + first->error_kind + ": " + first->error);
}

void remark_client(const report_input& in, std::vector<std::string>& out) {
  const client_health& client = in.run.client;
  if (client.cpu_share > busy_cpu_share)
    out.push_back("WARNING: this client was busy: an I/O thread used " +
                  fixed(client.cpu_share * 100, 0) + " % of a core (try --io-threads)");
  if (client.loop_lag_p99_ms > late_ms)
    out.push_back("WARNING: this client was late: P99 timer lag " +
                  fixed(client.loop_lag_p99_ms, 1) +
                  " ms (the machine or the client is overloaded)");
  if (client.send_lag_p99_ms > late_ms)
    out.push_back("WARNING: requests were sent late: P99 " + fixed(client.send_lag_p99_ms, 1) +
                  " ms after their time");
}

} // namespace

std::vector<std::string> report_remarks(const report_input& in) {
  std::vector<std::string> out;
  if (in.run.interrupted)
    out.push_back("WARNING: interrupted: partial results, " +
                  std::to_string(in.metrics.interrupted) + " requests were in flight and " +
                  std::to_string(in.metrics.unsent) + " unsent");
  if (!in.run.ended_early.empty())
    out.push_back("WARNING: ended " + in.run.ended_early + "; " +
                  std::to_string(in.metrics.interrupted) + " requests were cut and " +
                  std::to_string(in.metrics.unsent) + " not sent");
  if (in.metrics.outside_window > 0)
    out.push_back("figures count " + fixed(in.metrics.window_from_s, 2) + " s to " +
                  fixed(in.metrics.window_to_s, 2) + " s of the run; " +
                  std::to_string(in.metrics.outside_window) + " requests were sent outside of it");
  if (in.options.n_turns > 1 && answers_unknown(in.run))
    out.push_back("WARNING: the server sends no ids: its answers are missing from later turns");
  if (in.metrics.completed > 0) remark_lengths(in, out);
  remark_errors(in, out);
  remark_client(in, out);
  if (!in.options.stream)
    out.push_back("not streaming: TTFT, TPOT and ITL can't be seen from outside");
  return out;
}

} // namespace twill::bench
