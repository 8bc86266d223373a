#include "models/decoder/float_arrays.hpp"

#include <cstddef>
#include <utility>

#include "models/decoder/gpu_error.hpp"

namespace twill::models {

result<std::vector<gpu::buffer>> allocate_arrays(gpu::device& dev,
                                                 std::span<const float_array> arrays) {
  std::vector<gpu::buffer> all;
  for (const float_array& a : arrays) {
    auto memory =
        dev.allocate(static_cast<std::size_t>(a.rows * a.cols) * gpu::size_of(a.type), a.label);
    if (!memory.ok()) return from_gpu(memory.error());
    void* data = memory.value().data();
    std::visit([data]<class T>(T** at) { *at = static_cast<T*>(data); }, a.at);
    all.push_back(std::move(memory).value());
  }
  return result<std::vector<gpu::buffer>>(std::move(all));
}

} // namespace twill::models
