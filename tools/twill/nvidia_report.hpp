// nvidia_report: the part of `twill doctor` about NVIDIA GPUs: the driver, the GPUs, and whether
// the CUDA kernels of a build run on them. The functions are pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/twill/nvidia_driver.hpp"

namespace twill::tools {

/// The CUDA settings with which a program was built.
struct cuda_build {
  std::string architectures; ///< as CMake lists them, with commas: "80-real,90"; empty: no CUDA
  int cuda = 0;              ///< the CUDA toolkit's version: 13000 is 13.0
};

/// The form of the kernels that a GPU runs: machine code directly, PTX after the driver has
/// compiled it.
enum class kernel_code { none, ptx, machine_code };

/// Which of the kernels built for `architectures` a GPU of compute capability `arch` can run.
/// Machine code runs on GPUs of the same major version and an equal or higher minor version.
/// Without suitable machine code, PTX runs on every GPU of an equal or higher compute capability.
kernel_code kernels_for(std::string_view architectures, int arch);

/// The rows of a table as pairs of a name and a text.
std::vector<std::pair<std::string, std::string>> gpu_rows(const nvidia_driver& driver,
                                                          const cuda_build& build);

} // namespace twill::tools
