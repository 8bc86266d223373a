#include "tools/twill/offload/report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <utility>

#include "config/base/units.hpp"
#include "tools/common/http_client.hpp"

namespace twill::tools {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  const int n = std::snprintf(nullptr, 0, pattern, args...);
  std::string text(static_cast<std::size_t>(n) + 1, '\0');
  std::snprintf(text.data(), text.size(), pattern, args...);
  text.pop_back();
  return text;
}

double rate(std::int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

double gb(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(gib);
}

} // namespace

offload_measured measure(const models::offload::job_report& report, std::int32_t cut,
                         std::int32_t gen_len) {
  offload_measured m;
  m.prompt_tokens = report.prompt_tokens;
  m.output_tokens = report.output_tokens;
  m.prefill_drawn = report.prefill_drawn;
  m.prefill_seconds = report.prefill_seconds;
  m.decode_seconds = report.decode_seconds;
  m.rounds = static_cast<std::int64_t>(report.rounds.size());
  if (cut == 0 || cut == gen_len || !report.error.empty() || report.stopped) return m;
  // As in FlexGen, each of the `gen_len - cut` steps that were not run is assumed to take the mean
  // time of the measured steps after the first two.
  std::vector<double> steps;
  for (const models::offload::job_round& round : report.rounds)
    if (round.decode_seconds > 0) steps.push_back(round.decode_seconds);
  if (steps.size() < 3) return m;
  const auto rest = steps.begin() + 2;
  const double mean =
      std::accumulate(rest, steps.end(), 0.0) / static_cast<double>(steps.end() - rest);
  m.decode_seconds += mean * (gen_len - cut);
  m.output_tokens = report.output_tokens / cut * gen_len;
  m.projected = true;
  return m;
}

std::string report_text(const offload_measured& m) {
  // As in FlexGen, the decode throughput excludes the token that each prefill samples.
  const std::int64_t decoded = m.output_tokens - m.prefill_drawn;
  const double total = m.prefill_seconds + m.decode_seconds;
  std::string text = models::offload::text_of(m.sizes) + "\n";
  text += format("peak gpu mem: %.3f GB\tprojected: %s\n", gb(m.memory_measured),
                 m.projected ? "True" : "False");
  text += format("prefill latency: %.3f s\tprefill throughput: %.3f token/s\n", m.prefill_seconds,
                 rate(m.prompt_tokens, m.prefill_seconds));
  text += format("decode latency: %.3f s\tdecode throughput: %.3f token/s\n", m.decode_seconds,
                 rate(std::max<std::int64_t>(decoded, 0), m.decode_seconds));
  text += format("total latency: %.3f s\ttotal throughput: %.3f token/s\n", total,
                 rate(m.output_tokens, total));
  text += format("memory: %.3f GB projected, %.3f GB measured (%+.1f %%)\n", gb(m.memory_projected),
                 gb(m.memory_measured),
                 100 * (static_cast<double>(m.memory_measured) /
                            static_cast<double>(std::max<std::int64_t>(m.memory_projected, 1)) -
                        1));
  const auto rounds = std::max<std::int64_t>(m.rounds, 1);
  text += format("moved to the device per round (%ld rounds): %s from disk, %s from host; ",
                 static_cast<long>(m.rounds), format_bytes(m.moved.disk_bytes / rounds).c_str(),
                 format_bytes(m.moved.host_bytes / rounds).c_str());
  text += format("compute waited %.3f s for weights\n", m.moved.waited_seconds);
  for (const auto& [what, moved] : {std::pair{"KV", &m.kv_moved}, {"activations", &m.hidden_moved}})
    if (moved->loaded_bytes + moved->stored_bytes > 0)
      text += format("%s per round: %s loaded, %s stored; compute waited %.3f s for it\n", what,
                     format_bytes(moved->loaded_bytes / rounds).c_str(),
                     format_bytes(moved->stored_bytes / rounds).c_str(), moved->waited_seconds);
  if (!m.simulated.empty()) text += "simulated: " + m.simulated + "\n";
  return text;
}

std::string breakdown_text(const offload_measured& m, const models::offload::job_report& report) {
  const double waited =
      m.moved.waited_seconds + m.kv_moved.waited_seconds + m.hidden_moved.waited_seconds;
  double moving = 0;
  for (const models::offload::job_round& round : report.rounds)
    moving += round.moving_seconds;
  return format("breakdown: %.3f s prompts, %.3f s decoding; of these %.3f s compute, %.3f s "
                "waiting (%.3f weights, %.3f KV, %.3f activations); %.3f s with transfers under "
                "way\n",
                report.prefill_seconds, report.decode_seconds, report.total_seconds() - waited,
                waited, m.moved.waited_seconds, m.kv_moved.waited_seconds,
                m.hidden_moved.waited_seconds, moving);
}

void write_rounds(const std::string& file, const models::offload::job_report& report) {
  std::ofstream out(file);
  out << "round,seconds,decode_seconds,moving_seconds,moved_bytes,ended\n";
  for (std::size_t i = 0; i < report.rounds.size(); ++i) {
    const models::offload::job_round& round = report.rounds[i];
    out << format("%zu,%.6f,%.6f,%.6f,%lld,%.6f\n", i, round.seconds, round.decode_seconds,
                  round.moving_seconds, static_cast<long long>(round.moved_bytes),
                  std::chrono::duration<double>(round.ended.time_since_epoch()).count());
  }
  if (!out.flush())
    throw client_error("`--rounds` must be a file that can be written, got " + file);
}

} // namespace twill::tools
