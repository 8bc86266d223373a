// nvidia_report: what `twill doctor` says of NVIDIA's GPUs: the driver, the cards, and whether the
// kernels of a build run on them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/twill/nvidia_driver.hpp"

namespace twill::tools {

/// How a program was built.
struct cuda_build {
  std::string architectures; ///< as CMake lists them, with commas: "80-real,90"; empty: no CUDA
  int cuda = 0;              ///< the toolkit's version: 13000 is 13.0
};

/// What runs on a GPU: machine code as it is, PTX once the driver has compiled it.
enum class kernel_code { none, ptx, machine_code };

/// What of kernels for `architectures` runs on a GPU of compute capability `arch`: machine code
/// within a major version from its minor version on, and where there is none, PTX on every GPU that
/// is as new or newer.
kernel_code kernels_for(std::string_view architectures, int arch);

/// Rows of a table, each with a name.
std::vector<std::pair<std::string, std::string>> gpu_rows(const nvidia_driver& driver,
                                                          const cuda_build& build);

} // namespace twill::tools
