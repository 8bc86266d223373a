#include "tools/twill/nvidia_report.hpp"

#include <charconv>

#include "config/base/units.hpp"
#include "gpu/nvidia_versions.hpp"

namespace twill::tools {

namespace {

using gpu::capability;
using gpu::cuda_version;

/// On which GPUs this was tested, and when. Keep it equal to config/guides/gpu.md.
constexpr const char* tried_on =
    "no GPU has run twill as of 2026-11-27: its kernels ran in an emulator on a processor, and "
    "compile for compute capability 8.0, 8.6, 8.9 and 9.0";

struct architecture {
  int number = 0;
  bool machine_code = true, ptx = true;
};

std::vector<architecture> parse(std::string_view list) {
  std::vector<architecture> all;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view one = list.substr(0, comma);
    architecture found;
    std::from_chars(one.data(), one.data() + one.size(), found.number);
    found.machine_code = !one.ends_with("-virtual");
    found.ptx = !one.ends_with("-real");
    all.push_back(found);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return all;
}

std::string driver_text(const nvidia_driver& driver) {
  if (!driver.installed) return "none: there is no libcuda.so.1";
  std::string text = driver.version.empty() ? "installed" : driver.version;
  if (driver.cuda > 0) text += ", runs CUDA " + cuda_version(driver.cuda) + " and older";
  if (driver.gpus.empty())
    text += ", shows no GPU" + (driver.fault.empty() ? "" : ": " + driver.fault);
  return text;
}

std::string build_text(const cuda_build& build) {
  if (build.architectures.empty()) return "no CUDA: it computes on the processor alone";
  std::string text = "CUDA " + cuda_version(build.cuda) + ", kernels for compute capability ";
  bool later = false;
  for (std::size_t i = 0; const architecture& one : parse(build.architectures)) {
    text += (i++ == 0 ? "" : ", ") + capability(one.number);
    later = later || one.ptx;
  }
  return text + (later ? " and later" : "");
}

/// Whether this build can use the GPU, and if not, what the user can do.
std::string use_text(int arch, const nvidia_driver& driver, const cuda_build& build) {
  if (arch < gpu::oldest_capability)
    return "not usable: twill needs compute capability " + capability(gpu::oldest_capability) +
           " or later";
  if (build.architectures.empty()) return "not used: `tools/build cuda` builds for it";
  if (!gpu::driver_runs(driver.cuda, build.cuda))
    return "not usable: this build needs a driver for CUDA " + cuda_version(build.cuda);
  const kernel_code code = kernels_for(build.architectures, arch);
  if (code == kernel_code::none)
    return "not usable: `TWILL_CUDA_ARCH=" + std::to_string(arch) +
           " tools/build cuda` builds kernels for it";
  // A driver compiles PTX only from CUDA toolkits that are no newer than the driver's own CUDA
  // version, even within one major version.
  if (code == kernel_code::ptx && driver.cuda < build.cuda)
    return "not usable: the driver compiles this build's kernels for it, for which it must run "
           "CUDA " +
           cuda_version(build.cuda);
  return "usable: the kernels of this build are for it";
}

} // namespace

kernel_code kernels_for(std::string_view architectures, int arch) {
  kernel_code found = kernel_code::none;
  for (const architecture& one : parse(architectures)) {
    if (one.number > arch) continue;
    if (one.machine_code && one.number / 10 == arch / 10) return kernel_code::machine_code;
    if (one.ptx) found = kernel_code::ptx;
  }
  return found;
}

std::vector<std::pair<std::string, std::string>> gpu_rows(const nvidia_driver& driver,
                                                          const cuda_build& build) {
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("driver", driver_text(driver));
  for (std::size_t id = 0; id < driver.gpus.size(); ++id) {
    const nvidia_gpu& card = driver.gpus[id];
    rows.emplace_back("GPU " + std::to_string(id), card.name + ", compute capability " +
                                                       capability(card.arch) + ", " +
                                                       format_bytes(card.memory_bytes));
    rows.emplace_back("", use_text(card.arch, driver, build));
  }
  rows.emplace_back("this build", build_text(build));
  if (!build.architectures.empty() || !driver.gpus.empty()) rows.emplace_back("tried", tried_on);
  return rows;
}

} // namespace twill::tools
