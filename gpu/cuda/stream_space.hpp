// stream_space: the memory of a GPU, copies to and from it, and the stream that its ops are
// launched on, by CUDA's runtime alone. What else a device needs is for derived classes. For .cu
// files.
//
// Threads and errors as in gpu/detail/space.hpp. It owns the stream, which derived classes make and
// stream_space destroys.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/detail/space.hpp"

namespace twill::gpu::cuda {

/// device_lost with the action's name and CUDA's words, unless `code` is success.
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
  /// Waits for this device's work alone. A kernel that could not be launched shows here, or at the
  /// next copy.
  result<nothing> fence() override;
  /// After a fault CUDA answers every later call with its error; any other error is reported once
  /// and is cleared here.
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
