// The functions of the CUDA backend in a build without CUDA.
#include "gpu/detail/space.hpp"

namespace twill::gpu::detail {

bool cuda_is_present() {
  return false;
}

result<std::unique_ptr<space>> open_cuda_space(std::int32_t, std::int32_t) {
  return failure{errc::not_built, "device.kind must be auto or host in this build, which has no "
                                  "CUDA, got \"cuda\": build with `tools/build cuda`"};
}

} // namespace twill::gpu::detail
