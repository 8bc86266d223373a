// nvidia_driver: NVIDIA's driver and the GPUs that it shows.
//
// Asked of libcuda.so.1, which is looked up when it is asked, so that a build without CUDA can tell
// of a GPU, too. Any thread; blocks for up to some seconds, in which the driver starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace twill::tools {

struct nvidia_gpu {
  std::string name;
  int arch = 0; ///< compute capability: 86 is 8.6
  std::int64_t memory_bytes = 0;
};

struct nvidia_driver {
  bool installed = false;
  std::string version; ///< its own: "580.65.06"; empty where the kernel does not say
  int cuda = 0;        ///< the newest CUDA that it runs: 13000 is 13.0
  std::string fault;   ///< what the driver says where it shows no GPU
  std::vector<nvidia_gpu> gpus;
};

nvidia_driver ask_nvidia_driver();

} // namespace twill::tools
