#include "gpu/copy_stream.hpp"

#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include <sys/mman.h>

#include "config/base/units.hpp"
#include "gpu/detail/transfer_backend.hpp"

namespace twill::gpu {
namespace {

/// Maps memory with a reservation, unlike device::allocate(), which maps it without
/// (MAP_NORESERVE). If the system cannot provide the memory, the caller gets an error now, instead
/// of the process being killed when it writes the memory.
void* map_host(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

result<void*> nothing_to_make() {
  return result<void*>(nullptr);
}
void nothing_to_drop(void*) {}
result<nothing> copy(void*, void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  return nothing{};
}
/// On the host ops and copies are done when they return, so there is nothing to wait for.
result<nothing> done(void*) {
  return nothing{};
}
result<nothing> copies_done(void*, void*) {
  return nothing{};
}
result<nothing> device_done(const detail::space&, void*) {
  return nothing{};
}

constinit const detail::transfer_backend host_transfers{.device_is_host = true,
                                                        .pin = nullptr,
                                                        .unpin = nullptr,
                                                        .make_stream = nothing_to_make,
                                                        .drop_stream = nothing_to_drop,
                                                        .to_device = copy,
                                                        .to_host = copy,
                                                        .begin_to_device = copy,
                                                        .make_event = nothing_to_make,
                                                        .drop_event = nothing_to_drop,
                                                        .record = device_done,
                                                        .wait = done,
                                                        .record_copies = copies_done,
                                                        .copies_follow = copies_done,
                                                        .device_follows = device_done};

constinit std::atomic<const detail::transfer_backend*> current{&host_transfers};

} // namespace

namespace detail {

const transfer_backend& transfers() {
  return *current.load(std::memory_order_acquire);
}

void use_transfers(const transfer_backend& table) {
  current.store(&table, std::memory_order_release);
}

} // namespace detail

bool device_memory_is_host() {
  return detail::transfers().device_is_host;
}

result<host_buffer> host_buffer::allocate(std::size_t bytes, const char* label, bool pinned) {
  bytes = bytes == 0 ? 1 : bytes;
  const detail::transfer_backend& table = detail::transfers();
  const bool by_system = table.pin == nullptr || !pinned;
  void* data = by_system ? map_host(bytes) : table.pin(bytes);
  if (data == nullptr)
    return failure{errc::out_of_memory, std::string(label) + ": the machine refused " +
                                            format_bytes(static_cast<std::int64_t>(bytes)) +
                                            " of host memory"};
  host_buffer memory;
  memory.data_ = static_cast<unsigned char*>(data);
  memory.bytes_ = bytes;
  memory.unpin_ = by_system ? nullptr : table.unpin;
  return result<host_buffer>(std::move(memory));
}

host_buffer::host_buffer(host_buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
      unpin_(other.unpin_) {}

host_buffer& host_buffer::operator=(host_buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(unpin_, other.unpin_);
  return *this;
}

host_buffer::~host_buffer() {
  if (data_ == nullptr) return;
  if (unpin_ != nullptr)
    unpin_(data_);
  else
    munmap(data_, bytes_);
}

struct copy_stream::impl {
  const detail::transfer_backend& table = detail::transfers();
  result<void*> stream = table.make_stream();
};

struct marker::impl {
  const detail::transfer_backend& table = detail::transfers();
  result<void*> event = table.make_event();
  result<nothing> recorded = nothing{};

  /// An error that says why the marker cannot be waited for, or success.
  result<nothing> usable() const {
    if (!event.ok()) return event.error();
    return recorded;
  }
};

copy_stream::copy_stream() : impl_(std::make_unique<impl>()) {}
copy_stream::~copy_stream() {
  if (impl_->stream.ok()) impl_->table.drop_stream(impl_->stream.value());
}
result<nothing> copy_stream::to_device(void* device_dst, const void* host_src, std::size_t bytes) {
  if (!impl_->stream.ok()) return impl_->stream.error();
  return impl_->table.to_device(impl_->stream.value(), device_dst, host_src, bytes);
}
result<nothing> copy_stream::to_host(void* host_dst, const void* device_src, std::size_t bytes) {
  if (!impl_->stream.ok()) return impl_->stream.error();
  return impl_->table.to_host(impl_->stream.value(), host_dst, device_src, bytes);
}

result<nothing> copy_stream::begin_to_device(void* device_dst, const void* pinned_src,
                                             std::size_t bytes) {
  if (!impl_->stream.ok()) return impl_->stream.error();
  return impl_->table.begin_to_device(impl_->stream.value(), device_dst, pinned_src, bytes);
}
result<nothing> copy_stream::follow(const marker& point) {
  if (!impl_->stream.ok()) return impl_->stream.error();
  if (auto usable = point.impl_->usable(); !usable.ok()) return usable;
  return impl_->table.copies_follow(impl_->stream.value(), point.impl_->event.value());
}

marker::marker() : impl_(std::make_unique<impl>()) {}
marker::~marker() {
  if (impl_->event.ok()) impl_->table.drop_event(impl_->event.value());
}
void marker::record(device& dev) {
  if (impl_->event.ok()) impl_->recorded = impl_->table.record(dev.where(), impl_->event.value());
}
void marker::record(copy_stream& copies) {
  if (!impl_->event.ok() || !copies.impl_->stream.ok()) return;
  impl_->recorded = impl_->table.record_copies(copies.impl_->stream.value(), impl_->event.value());
}
result<nothing> marker::wait() {
  if (auto usable = impl_->usable(); !usable.ok()) return usable;
  return impl_->table.wait(impl_->event.value());
}
result<nothing> marker::device_follows(device& dev) {
  if (auto usable = impl_->usable(); !usable.ok()) return usable;
  return impl_->table.device_follows(dev.where(), impl_->event.value());
}

} // namespace twill::gpu
