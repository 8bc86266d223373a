// stream_space: implements the part of a space (the memory and kernels of a device) that needs only
// CUDA's runtime: the memory of a GPU, copies to and from it, and the stream on which its ops are
// launched. Derived classes implement the rest. Only .cu files may include this header.
//
// Threads and errors are those of gpu/detail/space.hpp. Derived classes create the stream;
// stream_space owns and destroys it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/detail/space.hpp"

namespace twill::gpu::cuda {

/// Success if `code` is; otherwise device_lost with the action's name and CUDA's error text.
result<nothing> outcome_of(cudaError_t code, const char* action);

class stream_space : public detail::space {
public:
  stream_space(detail::space_facts facts, cudaStream_t stream);
  stream_space(const stream_space&) = delete;
  stream_space& operator=(const stream_space&) = delete;
  ~stream_space() override;

  const detail::space_facts& facts() const override { return facts_; }
  cudaStream_t stream() const { return stream_; }

  void* allocate(std::size_t bytes, bool huge_pages) override;
  void free(void* data, std::size_t bytes) noexcept override;
  result<nothing> upload(void* device_dst, const void* host_src, std::size_t bytes) override;
  result<nothing> download(void* host_dst, const void* device_src, std::size_t bytes) override;
  result<nothing> enqueue_upload(void* device_dst, const void* host_src,
                                 std::size_t bytes) override;
  result<nothing> enqueue_download(void* host_dst, const void* device_src,
                                   std::size_t bytes) override;
  /// Waits for the work of this device only. If a kernel could not be launched, this call or the
  /// next copy reports the error.
  result<nothing> fence() override;
  /// Whether a fault has made the GPU unusable for this process. After a fault CUDA returns the
  /// error of the fault from every later call. CUDA reports any other error only once; this
  /// function clears such an error first, so that it does not count as a fault.
  bool is_lost() override;
  std::int64_t outside_bytes() override;

private:
  result<nothing> begin(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                        const char* action);
  result<nothing> copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       const char* action);

  detail::space_facts facts_;
  cudaStream_t stream_;
  std::int64_t free_at_first_; ///< bytes of the GPU
  std::int64_t allocated_ = 0;
};

} // namespace twill::gpu::cuda
