#include "tools/gpu-kernels/results.hpp"

#include <cstdio>
#include <utility>

#include "config/base/json_text.hpp"

namespace twill::gpu_kernels {

void results::device(const gpu::device_info& info, double read_rate, double copy_rate) {
  copy_rate_ = copy_rate;
  std::printf("device: %s, %s; read %.1f GB/s, copy %.1f GB/s\n", info.kind.c_str(),
              info.name.c_str(), read_rate / 1e9, copy_rate / 1e9);
  std::fflush(stdout);
  json_.write(to_json(value_object{{"record", "device"},
                                   {"kind", info.kind},
                                   {"name", info.name},
                                   {"read_bytes_per_s", read_rate},
                                   {"copy_bytes_per_s", copy_rate}}));
}

void results::checked(const outcome& found) {
  const bool is_right = found.fault.empty();
  ++(is_right ? right_ : wrong_);
  if (!is_right) {
    std::printf("WRONG %s, %s: %s\n", found.kernel.c_str(), found.shape.c_str(),
                found.fault.c_str());
    std::fflush(stdout);
  }
  json_.write(to_json(value_object{{"record", "check"},
                                   {"kernel", found.kernel},
                                   {"shape", found.shape},
                                   {"outputs", found.outputs},
                                   {"error_of_allowed", found.worst},
                                   {"right", is_right},
                                   {"fault", found.fault}}));
}

void results::timed(const timing& found) {
  if (!std::exchange(table_begun_, true))
    std::printf("%-36s %-30s %10s %9s %8s %8s %s\n", "kernel", "shape", "us", "GB/s", "of copy",
                "TFLOP/s", "timed by");
  const double seconds = found.times.median(), rate = found.bytes / seconds;
  std::printf("%-36s %-30s %10.1f %9.1f ", found.kernel.c_str(), found.shape.c_str(), seconds * 1e6,
              rate / 1e9);
  if (copy_rate_ > 0)
    std::printf("%6.1f %%", 100 * rate / copy_rate_);
  else
    std::printf("%8s", "-");
  std::printf(" %8.1f %s\n", found.operations / seconds / 1e12, gpu::name_of(found.times.how));
  std::fflush(stdout);
  json_.write(to_json(
      value_object{{"record", "time"},
                   {"kernel", found.kernel},
                   {"shape", found.shape},
                   {"timed_by", gpu::name_of(found.times.how)},
                   {"samples", static_cast<std::int64_t>(found.times.seconds.size())},
                   {"us", seconds * 1e6},
                   {"us_least", found.times.least() * 1e6},
                   {"us_most", found.times.most() * 1e6},
                   {"bytes", found.bytes},
                   {"gb_per_s", rate / 1e9},
                   {"operations_per_s", found.operations / seconds},
                   {"share_of_copy", copy_rate_ > 0 ? value(rate / copy_rate_) : value(nullptr)}}));
}

void results::finish() {
  std::printf("%d shapes right, %d wrong\n", right_, wrong_);
  json_.write(to_json(value_object{{"record", "end"}, {"right", right_}, {"wrong", wrong_}}));
}

} // namespace twill::gpu_kernels
