#include "gpu/cuda/stream_space.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "gpu/cuda/cuda_backends.hpp"

namespace twill::gpu::cuda {

namespace {

constexpr const char* to_device = "copying to the device";
constexpr const char* from_device = "copying from the device";

/// The GPU's free memory at this moment.
std::int64_t free_bytes() {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<std::int64_t>(free) : 0;
}

} // namespace

result<nothing> outcome_of(cudaError_t code, const char* action) {
  if (code == cudaSuccess) return nothing{};
  return failure{errc::device_lost, std::string(action) + ": " + cudaGetErrorString(code)};
}

cudaStream_t stream_of(const detail::space& gpu) {
  return static_cast<const stream_space&>(gpu).stream();
}

stream_space::stream_space(detail::space_facts facts, cudaStream_t stream)
    : facts_(std::move(facts)), stream_(stream), free_at_first_(free_bytes()) {}

stream_space::~stream_space() {
  cudaStreamDestroy(stream_);
}

void* stream_space::allocate(std::size_t bytes, bool) {
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError(); // clears the error, which would otherwise show in later calls
    return nullptr;
  }
  // Waits, since copies on other streams may follow.
  if (cudaMemsetAsync(data, 0, bytes, stream_) == cudaSuccess &&
      cudaStreamSynchronize(stream_) == cudaSuccess) {
    allocated_ += static_cast<std::int64_t>(bytes);
    return data;
  }
  cudaFree(data);
  return nullptr;
}

void stream_space::free(void* data, std::size_t bytes) noexcept {
  cudaFree(data);
  allocated_ -= static_cast<std::int64_t>(bytes);
}

result<nothing> stream_space::upload(void* device_dst, const void* host_src, std::size_t bytes) {
  return copy(device_dst, host_src, bytes, cudaMemcpyHostToDevice, to_device);
}

result<nothing> stream_space::download(void* host_dst, const void* device_src, std::size_t bytes) {
  return copy(host_dst, device_src, bytes, cudaMemcpyDeviceToHost, from_device);
}

result<nothing> stream_space::enqueue_upload(void* device_dst, const void* host_src,
                                             std::size_t bytes) {
  return begin(device_dst, host_src, bytes, cudaMemcpyHostToDevice, to_device);
}

result<nothing> stream_space::enqueue_download(void* host_dst, const void* device_src,
                                               std::size_t bytes) {
  return begin(host_dst, device_src, bytes, cudaMemcpyDeviceToHost, from_device);
}

result<nothing> stream_space::fence() {
  const cudaError_t launched = cudaGetLastError();
  return outcome_of(launched != cudaSuccess ? launched : cudaStreamSynchronize(stream_),
                    "running on the device");
}

bool stream_space::is_lost() {
  cudaGetLastError(); // clears the error of a refused call, which does not concern later calls
  return cudaStreamSynchronize(stream_) != cudaSuccess; // reports a fault of pending work
}

std::int64_t stream_space::outside_bytes() {
  return std::max<std::int64_t>(free_at_first_ - free_bytes() - allocated_, 0);
}

result<nothing> stream_space::begin(void* to, const void* from, std::size_t bytes,
                                    cudaMemcpyKind kind, const char* action) {
  if (bytes == 0) return nothing{};
  if (auto launched = outcome_of(cudaGetLastError(), "launching on the device"); !launched.ok())
    return launched;
  return outcome_of(cudaMemcpyAsync(to, from, bytes, kind, stream_), action);
}

result<nothing> stream_space::copy(void* to, const void* from, std::size_t bytes,
                                   cudaMemcpyKind kind, const char* action) {
  if (auto begun = begin(to, from, bytes, kind, action); !begun.ok() || bytes == 0) return begun;
  return outcome_of(cudaStreamSynchronize(stream_), action);
}

} // namespace twill::gpu::cuda
