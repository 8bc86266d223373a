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

/// Reserved, unlike a device arena: a tier that cannot be had is an error now, not a killed process
/// later.
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
  const bool mapped = detail::on_host || !pinned;
  void* data = mapped ? map_host(bytes) : pin_host(bytes);
  if (data == nullptr)
    return failure{errc::out_of_memory, std::string(label) + ": the machine refused " +
                                            format_bytes(static_cast<std::int64_t>(bytes)) +
                                            " of host memory"};
  host_buffer made;
  made.data_ = static_cast<unsigned char*>(data);
  made.bytes_ = bytes;
  made.mapped_ = mapped;
  return result<host_buffer>(std::move(made));
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

result<nothing> outcome_of(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return nothing{};
  return failure{errc::device_lost, std::string(what) + ": " + cudaGetErrorString(code)};
}

result<nothing> copy(cudaStream_t stream, cudaError_t made, void* to, const void* from,
                     std::size_t bytes, cudaMemcpyKind kind, const char* what) {
  if (made != cudaSuccess) return outcome_of(made, "making a copy stream");
  const cudaError_t begun = cudaMemcpyAsync(to, from, bytes, kind, stream);
  return outcome_of(begun != cudaSuccess ? begun : cudaStreamSynchronize(stream), what);
}

} // namespace

struct copy_stream::impl {
  cudaStream_t stream = nullptr;
  cudaError_t made = cudaSuccess;
};

copy_stream::copy_stream() : impl_(std::make_unique<impl>()) {
  impl_->made = cudaStreamCreateWithFlags(&impl_->stream, cudaStreamNonBlocking);
}
copy_stream::~copy_stream() {
  if (impl_->made == cudaSuccess) cudaStreamDestroy(impl_->stream);
}
result<nothing> copy_stream::to_device(void* device_dst, const void* host_src, std::size_t bytes) {
  return copy(impl_->stream, impl_->made, device_dst, host_src, bytes, cudaMemcpyHostToDevice,
              "copying to the device");
}
result<nothing> copy_stream::to_host(void* host_dst, const void* device_src, std::size_t bytes) {
  return copy(impl_->stream, impl_->made, host_dst, device_src, bytes, cudaMemcpyDeviceToHost,
              "copying from the device");
}

struct marker::impl {
  cudaEvent_t event = nullptr;
  cudaError_t made = cudaSuccess;
  cudaError_t recorded = cudaSuccess;
};

marker::marker() : impl_(std::make_unique<impl>()) {
  impl_->made =
      cudaEventCreateWithFlags(&impl_->event, cudaEventDisableTiming | cudaEventBlockingSync);
}
marker::~marker() {
  if (impl_->made == cudaSuccess) cudaEventDestroy(impl_->event);
}
void marker::record() {
  if (impl_->made == cudaSuccess)
    impl_->recorded = cudaEventRecord(impl_->event, detail::exec_space().cuda_stream());
}
result<nothing> marker::wait() {
  if (impl_->made != cudaSuccess) return outcome_of(impl_->made, "making an event");
  if (impl_->recorded != cudaSuccess) return outcome_of(impl_->recorded, "recording an event");
  return outcome_of(cudaEventSynchronize(impl_->event), "waiting for the device");
}

#else

// Ops are done when they return: there is nothing to wait for, and a copy is a copy.
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
