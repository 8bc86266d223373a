// A GPU as a space, over CUDA's runtime alone: what gpu/cuda/cuda_device.cu does with Kokkos. Its
// table of ops has CUDA's own kernels and no portable forms.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/sampling_backend.hpp"
#include "gpu/detail/space.hpp"

namespace twill::gpu {

namespace {

result<nothing> outcome_of(cudaError_t code, const char* action) {
  if (code == cudaSuccess) return nothing{};
  return failure{errc::device_lost, std::string(action) + ": " + cudaGetErrorString(code)};
}

/// Ops without kernels of CUDA's own, which no family may call.
constinit const detail::attention_backend no_attention{};
constinit const detail::sampling_backend no_sampling{};
constinit const detail::rows_backend no_rows{};

constexpr detail::op_backends table{
    {&cuda::linear, &no_attention, &no_sampling, &no_rows, &cuda::probe}, &table};

class raw_space final : public detail::space {
public:
  raw_space(detail::space_facts facts, cudaStream_t stream)
      : facts_(std::move(facts)), stream_(stream) {}
  ~raw_space() override { cudaStreamDestroy(stream_); }

  const detail::space_facts& facts() const override { return facts_; }
  const detail::op_backends& ops() const override { return table; }
  const void* instance() const override { return nullptr; }
  cudaStream_t stream() const { return stream_; }

  void* allocate(std::size_t bytes, bool) override {
    void* data = nullptr;
    if (cudaMalloc(&data, bytes) != cudaSuccess) {
      cudaGetLastError(); // refused memory is no error of later calls
      return nullptr;
    }
    if (cudaMemsetAsync(data, 0, bytes, stream_) == cudaSuccess &&
        cudaStreamSynchronize(stream_) == cudaSuccess)
      return data;
    cudaFree(data);
    return nullptr;
  }
  void free(void* data, std::size_t) noexcept override { cudaFree(data); }

  result<nothing> upload(void* to, const void* from, std::size_t bytes) override {
    if (auto begun = enqueue_upload(to, from, bytes); !begun.ok()) return begun;
    return fence();
  }
  result<nothing> download(void* to, const void* from, std::size_t bytes) override {
    if (auto begun = enqueue_download(to, from, bytes); !begun.ok()) return begun;
    return fence();
  }
  result<nothing> enqueue_upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return nothing{};
    return outcome_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_),
                      "copying to the device");
  }
  result<nothing> enqueue_download(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return nothing{};
    return outcome_of(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
                      "copying from the device");
  }
  result<nothing> fence() override {
    const cudaError_t launched = cudaGetLastError();
    return outcome_of(launched != cudaSuccess ? launched : cudaStreamSynchronize(stream_),
                      "running on the device");
  }

private:
  detail::space_facts facts_;
  cudaStream_t stream_;
};

} // namespace

cudaStream_t cuda::stream_of(const detail::space& gpu) {
  return static_cast<const raw_space&>(gpu).stream();
}

bool detail::cuda_is_present() {
  return true;
}

result<std::unique_ptr<detail::space>> detail::open_cuda_space(std::int32_t id, std::int32_t) {
  int count = 0;
  if (const cudaError_t counted = cudaGetDeviceCount(&count); counted != cudaSuccess || count == 0)
    return failure{errc::not_built,
                   std::string("no GPU: CUDA says \"") + cudaGetErrorString(counted) + "\""};
  cudaDeviceProp properties{};
  std::size_t free = 0, total = 0;
  cudaStream_t stream = nullptr;
  for (const auto& done :
       {outcome_of(cudaSetDevice(id), "choosing the GPU"),
        outcome_of(cudaGetDeviceProperties(&properties, id), "asking its name"),
        outcome_of(cudaMemGetInfo(&free, &total), "asking its memory"),
        outcome_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream")})
    if (!done.ok()) return done.error();
  return result<std::unique_ptr<space>>(std::make_unique<raw_space>(
      space_facts{.kind = "cuda",
                  .name = properties.name,
                  .backend = "CUDA",
                  .memory_bytes = static_cast<std::int64_t>(free) - (std::int64_t{512} << 20),
                  .is_host = false,
                  .multiplies_bf16 = properties.major >= 8},
      stream));
}

/// Without one, no kernel of CUDA's own could be checked.
std::unique_ptr<detail::space> detail::open_host_space(std::int32_t) {
  throw std::logic_error("gpu-kernels computes on a GPU alone");
}

} // namespace twill::gpu
