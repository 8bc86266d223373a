#include "gpu/copy_stream.hpp"

#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <sys/mman.h>

#include "config/base/units.hpp"
#include "gpu/detail/kokkos_compat.hpp"

namespace twill::gpu {
namespace {

#ifdef KOKKOS_ENABLE_CUDA
using pinned_space = Kokkos::CudaHostPinnedSpace;
#else
using pinned_space = Kokkos::HostSpace; // never used: the device's memory is the host's
#endif

/// Reserves the memory, unlike device::allocate(): memory that the system cannot give is an error
/// now instead of a killed process later.
void* map_host(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void* pin_host(std::size_t bytes) {
  try {
    return Kokkos::kokkos_malloc<pinned_space>("twill host tier", bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

} // namespace

bool device_memory_is_host() {
  return detail::on_host;
}

result<host_buffer> host_buffer::allocate(std::size_t bytes, const char* label, bool pinned) {
  bytes = bytes == 0 ? 1 : bytes;
  const bool by_system = detail::on_host || !pinned;
  void* data = by_system ? map_host(bytes) : pin_host(bytes);
  if (data == nullptr)
    return failure{errc::out_of_memory, std::string(label) + ": the machine refused " +
                                            format_bytes(static_cast<std::int64_t>(bytes)) +
                                            " of host memory"};
  host_buffer mapped;
  mapped.data_ = static_cast<unsigned char*>(data);
  mapped.bytes_ = bytes;
  mapped.mapped_ = by_system;
  return result<host_buffer>(std::move(mapped));
}

host_buffer::host_buffer(host_buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
      mapped_(other.mapped_) {}

host_buffer& host_buffer::operator=(host_buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

host_buffer::~host_buffer() {
  if (data_ == nullptr) return;
  if (mapped_)
    munmap(data_, bytes_);
  else
    Kokkos::kokkos_free<pinned_space>(data_);
}

#ifdef KOKKOS_ENABLE_CUDA

namespace {

result<nothing> outcome_of(cudaError_t code, const char* action) {
  if (code == cudaSuccess) return nothing{};
  return failure{errc::device_lost, std::string(action) + ": " + cudaGetErrorString(code)};
}

result<nothing> copy(cudaStream_t stream, cudaError_t created, void* to, const void* from,
                     std::size_t bytes, cudaMemcpyKind kind, const char* action) {
  if (created != cudaSuccess) return outcome_of(created, "making a copy stream");
  const cudaError_t begun = cudaMemcpyAsync(to, from, bytes, kind, stream);
  return outcome_of(begun != cudaSuccess ? begun : cudaStreamSynchronize(stream), action);
}

} // namespace

struct copy_stream::impl {
  cudaStream_t stream = nullptr;
  cudaError_t created = cudaSuccess;
};

copy_stream::copy_stream() : impl_(std::make_unique<impl>()) {
  impl_->created = cudaStreamCreateWithFlags(&impl_->stream, cudaStreamNonBlocking);
}
copy_stream::~copy_stream() {
  if (impl_->created == cudaSuccess) cudaStreamDestroy(impl_->stream);
}
result<nothing> copy_stream::to_device(void* device_dst, const void* host_src, std::size_t bytes) {
  return copy(impl_->stream, impl_->created, device_dst, host_src, bytes, cudaMemcpyHostToDevice,
              "copying to the device");
}
result<nothing> copy_stream::to_host(void* host_dst, const void* device_src, std::size_t bytes) {
  return copy(impl_->stream, impl_->created, host_dst, device_src, bytes, cudaMemcpyDeviceToHost,
              "copying from the device");
}

struct marker::impl {
  cudaEvent_t event = nullptr;
  cudaError_t created = cudaSuccess;
  cudaError_t recorded = cudaSuccess;
};

marker::marker() : impl_(std::make_unique<impl>()) {
  impl_->created =
      cudaEventCreateWithFlags(&impl_->event, cudaEventDisableTiming | cudaEventBlockingSync);
}
marker::~marker() {
  if (impl_->created == cudaSuccess) cudaEventDestroy(impl_->event);
}
void marker::record() {
  if (impl_->created == cudaSuccess)
    impl_->recorded = cudaEventRecord(impl_->event, detail::exec_space().cuda_stream());
}
result<nothing> marker::wait() {
  if (impl_->created != cudaSuccess) return outcome_of(impl_->created, "making an event");
  if (impl_->recorded != cudaSuccess) return outcome_of(impl_->recorded, "recording an event");
  return outcome_of(cudaEventSynchronize(impl_->event), "waiting for the device");
}

#else

// On the host ops are done when they return, so there is nothing to wait for.
struct copy_stream::impl {};
copy_stream::copy_stream() = default;
copy_stream::~copy_stream() = default;
result<nothing> copy_stream::to_device(void* device_dst, const void* host_src, std::size_t bytes) {
  std::memcpy(device_dst, host_src, bytes);
  return nothing{};
}
result<nothing> copy_stream::to_host(void* host_dst, const void* device_src, std::size_t bytes) {
  std::memcpy(host_dst, device_src, bytes);
  return nothing{};
}

struct marker::impl {};
marker::marker() = default;
marker::~marker() = default;
void marker::record() {}
result<nothing> marker::wait() {
  return nothing{};
}

#endif

} // namespace twill::gpu
