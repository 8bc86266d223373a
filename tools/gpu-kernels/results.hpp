// results: writes what the checks and timings of the CUDA kernels found, as a table on standard
// output and as JSON lines.
//
// Each line is written as soon as its result is known, so that an interrupted run keeps the results
// it has.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/device.hpp"
#include "gpu/launch_timer.hpp"
#include "tools/twill-bench/kernels/json_lines.hpp"

namespace twill::gpu_kernels {

/// One kernel's results at one shape.
struct outcome {
  std::string kernel, shape;
  std::int64_t outputs = 0; ///< how many were compared
  double worst = 0;         ///< the largest error, as a share of the error that is allowed
  std::string fault;        ///< what is wrong, in words; empty: nothing
};

/// One kernel's time at one shape.
struct timing {
  std::string kernel, shape;
  double bytes = 0;      ///< read or written at least
  double operations = 0; ///< a multiply-add is two
  gpu::launch_times times;
};

class results {
public:
  /// Writes JSON lines to `json_path`; empty: none. Throws std::runtime_error where it cannot.
  explicit results(const std::string& json_path) : json_(json_path) {}

  /// Reports the device, and the measured peak rates (bytes per second) that times are compared
  /// with.
  void device(const gpu::device_info& info, double read_rate, double copy_rate);
  void checked(const outcome& found);
  void timed(const timing& found);
  /// Reports how many shapes were correct.
  void finish();

  int wrong() const { return wrong_; }
  int right() const { return right_; }

private:
  bench::json_lines json_;
  double copy_rate_ = 0;
  int right_ = 0, wrong_ = 0;
  bool table_begun_ = false;
};

} // namespace twill::gpu_kernels
