// report: the output of `twill-bench kernels`: a table for people, and JSON lines for programs.
//
// The first line of both says what kind of device was measured and what its limits are. A line is
// written as soon as its case is measured, so that a run that is ended early keeps its results.
#pragma once

#include <string>

#include "gpu/device.hpp"
#include "gpu/launch_timer.hpp"
#include "gpu/peak_rates.hpp"
#include "tools/twill-bench/kernels/cases.hpp"
#include "tools/twill-bench/kernels/json_lines.hpp"

namespace twill::bench {

/// The highest rates that the device reached in this run.
struct ceilings {
  double read_bytes_per_s = 0, copy_bytes_per_s = 0; ///< 0: not measured
  gpu::peak_rates peaks;
  std::int64_t cache_bytes = 0, bytes_in_turn = 0;
};

class kernel_report {
public:
  /// `json_path` is the file of the JSON lines; an empty path writes none. Throws
  /// std::runtime_error when the file cannot be written.
  explicit kernel_report(const std::string& json_path) : json_(json_path) {}

  void device(const gpu::device_info& info, const ceilings& limits);
  /// `read_bytes_per_s` is the highest read rate at the time of the measurement.
  void measured(case_group group, const kernel_case& c, const gpu::launch_times& times,
                double read_bytes_per_s);

private:
  json_lines json_;
  gpu::peak_rates peaks_;
};

} // namespace twill::bench
