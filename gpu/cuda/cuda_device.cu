// Implements space (the memory and kernels of a device) and transfer_backend (copies beside them)
// of gpu/detail/ for a GPU with CUDA and Kokkos. Errors of CUDA are returned as values; nothing in
// this file aborts.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda/cuda_backends.hpp"
#include "gpu/cuda/stream_space.hpp"
#include "gpu/detail/gpu_refusals.hpp"
#include "gpu/detail/kokkos_abort.hpp"
#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/detail/one_gpu.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/detail/transfer_backend.hpp"

namespace twill::gpu::cuda {

namespace {

/// Memory that is left out of the budget for CUDA's and libraries' own allocations.
constexpr std::int64_t spare_bytes = std::int64_t{512} << 20;

/// By default CUDA loads a kernel, and allocates memory for it, at the kernel's first launch. That
/// would happen while requests are served and weights and KV may already have taken that memory.
/// This environment variable makes CUDA load all kernels when it starts, before the memory budget
/// is computed from the free memory. setenv() is safe here, because no other thread runs yet during
/// static initialisation.
[[maybe_unused]] const int loads_at_start = setenv("CUDA_MODULE_LOADING", "EAGER", 0);

/// The number of the process's GPU. Each thread that copies must select this GPU for itself.
std::atomic<int> chosen{0};

class cuda_space final : public stream_space {
public:
  cuda_space(detail::space_facts facts, cudaStream_t stream)
      : stream_space(std::move(facts), stream), kokkos_(std::make_unique<Kokkos::Cuda>(stream)) {}
  ~cuda_space() override {
    // On a lost GPU Kokkos would abort the process when it frees the resources of its execution
    // space instance (kokkos_), so the instance is leaked then.
    if (cudaStreamSynchronize(stream()) != cudaSuccess) [[maybe_unused]]
      const Kokkos::Cuda* kept = kokkos_.release();
  }

  const detail::op_backends& ops() const override { return backends(); }
  const void* instance() const override { return kokkos_.get(); }

private:
  std::unique_ptr<Kokkos::Cuda> kokkos_; ///< uses the stream, which outlives it
};

void* pin(std::size_t bytes) {
  void* data = nullptr;
  cudaSetDevice(chosen.load());
  if (cudaMallocHost(&data, bytes) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  std::memset(data, 0, bytes);
  return data;
}
void unpin(void* data) {
  cudaFreeHost(data);
}
result<void*> make_stream() {
  cudaSetDevice(chosen.load());
  cudaStream_t stream = nullptr;
  const auto made =
      outcome_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a copy stream");
  if (!made.ok()) return made.error();
  return result<void*>(stream);
}
void drop_stream(void* stream) {
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}
result<nothing> copy(void* stream, void* to, const void* from, std::size_t bytes,
                     const char* action) {
  const auto on = static_cast<cudaStream_t>(stream);
  const cudaError_t begun = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on);
  return outcome_of(begun != cudaSuccess ? begun : cudaStreamSynchronize(on), action);
}
result<nothing> to_device(void* stream, void* to, const void* from, std::size_t bytes) {
  return copy(stream, to, from, bytes, "copying to the device");
}
result<nothing> to_host(void* stream, void* to, const void* from, std::size_t bytes) {
  return copy(stream, to, from, bytes, "copying from the device");
}
result<void*> make_event() {
  cudaSetDevice(chosen.load());
  cudaEvent_t event = nullptr;
  const auto made =
      outcome_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
                 "making an event");
  if (!made.ok()) return made.error();
  return result<void*>(event);
}
void drop_event(void* event) {
  cudaEventDestroy(static_cast<cudaEvent_t>(event));
}
/// A process with a GPU may also have a host device. The ops of a host device are done when they
/// return, so nothing is recorded for it.
result<nothing> record(const detail::space& on, void* event) {
  if (on.facts().is_host) return nothing{};
  return outcome_of(cudaEventRecord(static_cast<cudaEvent_t>(event), stream_of(on)),
                    "recording an event");
}
result<nothing> wait(void* event) {
  return outcome_of(cudaEventSynchronize(static_cast<cudaEvent_t>(event)),
                    "waiting for the device");
}

result<nothing> begin_to_device(void* stream, void* to, const void* from, std::size_t bytes) {
  return outcome_of(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream)),
      "copying to the device");
}
result<nothing> record_copies(void* stream, void* event) {
  return outcome_of(
      cudaEventRecord(static_cast<cudaEvent_t>(event), static_cast<cudaStream_t>(stream)),
      "recording an event of copies");
}
result<nothing> copies_follow(void* stream, void* event) {
  return outcome_of(
      cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event), 0),
      "ordering copies");
}
result<nothing> device_follows(const detail::space& on, void* event) {
  if (on.facts().is_host) return wait(event);
  return outcome_of(cudaStreamWaitEvent(stream_of(on), static_cast<cudaEvent_t>(event), 0),
                    "ordering the device's work");
}

constinit const detail::transfer_backend transfers{.device_is_host = false,
                                                   .pin = pin,
                                                   .unpin = unpin,
                                                   .make_stream = make_stream,
                                                   .drop_stream = drop_stream,
                                                   .to_device = to_device,
                                                   .to_host = to_host,
                                                   .begin_to_device = begin_to_device,
                                                   .make_event = make_event,
                                                   .drop_event = drop_event,
                                                   .record = record,
                                                   .wait = wait,
                                                   .record_copies = record_copies,
                                                   .copies_follow = copies_follow,
                                                   .device_follows = device_follows};

detail::one_gpu in_use;

/// Whether the GPU in use is lost. Any thread.
bool is_lost() {
  if (!in_use.is_bound()) return false;
  cudaSetDevice(chosen.load());
  const cudaError_t now = cudaStreamQuery(nullptr);
  return now != cudaSuccess && now != cudaErrorNotReady;
}

/// This kernel writes the architecture that it was compiled for. Its compiled versions show for
/// which generations of GPUs this build has kernels.
__global__ void any_kernel(int* arch) {
#ifdef __CUDA_ARCH__
  *arch = __CUDA_ARCH__ / 10;
#endif
}

/// Selects the GPU for this thread and for Kokkos, if the GPU can run this build's kernels.
result<nothing> start_on(const cudaDeviceProp& properties, std::int32_t id, std::int32_t threads) {
  if (auto done = outcome_of(cudaSetDevice(id), "choosing the GPU"); !done.ok()) return done;
  const std::string gpu = "GPU " + std::to_string(id) + " (" + properties.name + ")";
  const int found = 10 * properties.major + properties.minor;
  if (auto runs = detail::check_kokkos_arch(detail::kokkos_gpu_arch, found, gpu); !runs.ok())
    return runs;
  cudaFuncAttributes compiled{};
  const cudaError_t known = cudaFuncGetAttributes(&compiled, any_kernel);
  if (known == cudaErrorNoKernelImageForDevice || known == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    std::vector<int> built{__CUDA_ARCH_LIST__};
    for (int& arch : built)
      arch /= 10;
    return detail::no_kernels_for(built, found, gpu);
  }
  if (auto asked = outcome_of(known, "looking for this build's kernels"); !asked.ok()) return asked;
  chosen.store(id);
  detail::log_aborts_of_kokkos(is_lost);
  try {
    detail::start_kokkos(threads, id);
  } catch (const std::exception& error) {
    return failure{errc::device_lost, std::string("starting Kokkos on the GPU: ") + error.what()};
  }
  return nothing{};
}

/// GPU number `id` as a space.
result<std::unique_ptr<detail::space>> open_gpu(std::int32_t id, std::int32_t threads) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    return detail::no_gpu(driver, CUDART_VERSION,
                          counted != cudaSuccess ? cudaGetErrorString(counted) : "no device");
  }
  if (id < 0 || id >= count)
    return failure{errc::not_built, "device.id must be 0 to " + std::to_string(count - 1) +
                                        " on this machine, got " + std::to_string(id)};
  cudaDeviceProp properties{};
  if (auto done = outcome_of(cudaGetDeviceProperties(&properties, id), "asking the GPU's name");
      !done.ok())
    return done.error();
  auto started = in_use.use(id, [&] { return start_on(properties, id, threads); });
  if (!started.ok()) return started.error();

  std::size_t free = 0, total = 0;
  cudaStream_t stream = nullptr;
  if (auto done = outcome_of(cudaMemGetInfo(&free, &total), "asking the GPU's memory"); !done.ok())
    return done.error();
  if (auto done =
          outcome_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
      !done.ok())
    return done.error();
  const auto room = static_cast<std::int64_t>(free);
  const std::int64_t spare = std::min(spare_bytes, room / 2);
  detail::space_facts facts{.kind = "cuda",
                            .name = properties.name,
                            .backend = detail::backend_name<Kokkos::Cuda>(),
                            .memory_bytes = room - spare,
                            .is_host = false,
                            .spare_bytes = spare,
                            .multiplies_bf16 = properties.major >= 8,
                            .multiplies_f16 = true,
                            .half_activations = true};
  detail::use_transfers(transfers);
  return result<std::unique_ptr<detail::space>>(
      std::make_unique<cuda_space>(std::move(facts), stream));
}

} // namespace

} // namespace twill::gpu::cuda

namespace twill::gpu::detail {

bool cuda_is_present() {
  if (cuda::in_use.is_bound()) return true; // also when it is lost and answers nothing
  int count = 0;
  const bool present = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  cudaGetLastError();
  return present;
}

result<std::unique_ptr<space>> open_cuda_space(std::int32_t id, std::int32_t threads) {
  auto opened = cuda::open_gpu(id, threads);
  if (!opened.ok() && cuda::is_lost()) lose_chip();
  return opened;
}

} // namespace twill::gpu::detail
