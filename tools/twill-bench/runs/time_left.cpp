#include "tools/twill-bench/runs/time_left.hpp"

namespace twill::bench {
namespace {

double work_of(const sweep& of, const sweep_cell& cell, bool throughput) {
  const auto requests =
      double(throughput ? of.setup.throughput_requests : of.setup.latency_requests);
  return requests * (cell.output_tokens + 0.1 * cell.input_tokens);
}

struct kind {
  double work_done = 0, seconds = 0, work_left = 0;
};

} // namespace

double seconds_left(const sweep& of, const sweep_cell& current, bool current_is_throughput) {
  kind kinds[2];
  for (const sweep_cell& cell : of.cells) {
    if (!cell.skipped.empty()) continue;
    for (const bool throughput : {false, true}) {
      kind& here = kinds[throughput];
      const double work = work_of(of, cell, throughput);
      const auto& measured = throughput ? cell.throughput : cell.latency;
      const bool now = &cell == &current && throughput == current_is_throughput;
      if (measured && measured->completed > 0) {
        here.work_done += work;
        here.seconds += measured->duration_s;
      } else if (!measured && !now) {
        here.work_left += work;
      }
    }
  }
  double left = 0;
  for (int i = 0; i < 2; ++i) {
    const kind& speed = kinds[i].work_done > 0 ? kinds[i] : kinds[1 - i];
    if (speed.work_done > 0) left += kinds[i].work_left * speed.seconds / speed.work_done;
  }
  return left;
}

} // namespace twill::bench
