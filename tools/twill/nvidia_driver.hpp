// nvidia_driver: queries the NVIDIA driver and its GPUs.
//
// The functions of libcuda.so.1 are loaded at run time, so that a build without CUDA can report a
// GPU as well. Any thread may call ask_nvidia_driver(). A call blocks for up to some seconds while
// the driver starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace twill::tools {

struct nvidia_gpu {
  std::string name;
  int arch = 0; ///< compute capability times ten: 86 is 8.6
  std::int64_t memory_bytes = 0;
};

struct nvidia_driver {
  bool installed = false;
  std::string version; ///< the driver's version, such as "580.65.06"; empty when the kernel does
                       ///< not report it
  int cuda = 0;        ///< the newest CUDA version that the driver supports: 13000 is 13.0
  std::string fault;   ///< the driver's reason when it shows no GPU
  std::vector<nvidia_gpu> gpus;
};

nvidia_driver ask_nvidia_driver();

} // namespace twill::tools
