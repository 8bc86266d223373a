#include "gpu/device.hpp"

#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "config/base/units.hpp"
#include "gpu/detail/host_slabs.hpp"
#include "gpu/detail/huge_pages.hpp"
#include "gpu/detail/kokkos_compat.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/host/thread_pool.hpp"
#include "gpu/machine.hpp"

namespace twill::gpu {

namespace {

/// Zero-filled memory of the execution space, or null. On the host it is committed page by page, in
/// huge pages where `huge_pages` asks for them and the system has them.
void* map_memory(std::size_t bytes, [[maybe_unused]] bool huge_pages) {
  if constexpr (detail::on_host) {
    if (huge_pages) return detail::map_huge_pages(bytes);
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  } else {
    void* data = nullptr;
    try {
      data = Kokkos::kokkos_malloc<detail::memory_space>("twill", bytes);
    } catch (const std::exception&) {
      return nullptr;
    }
    if (data != nullptr) {
      const detail::bytes_view<detail::memory_space> view(static_cast<unsigned char*>(data), bytes);
      Kokkos::deep_copy(view, static_cast<unsigned char>(0));
    }
    return data;
  }
}

void unmap_memory(void* data, std::size_t bytes) noexcept {
  if constexpr (detail::on_host)
    munmap(data, bytes);
  else
    Kokkos::kokkos_free<detail::memory_space>(data);
}

} // namespace

result<std::unique_ptr<device>> device::open(const device_config& config) {
  constexpr const char* built = detail::on_host ? "host" : "cuda";
  if (config.kind != "auto" && config.kind != "host" && config.kind != "cuda")
    return failure{errc::not_built,
                   "device.kind must be auto, host or cuda, got \"" + config.kind + "\""};
  if (config.kind != "auto" && config.kind != built)
    return failure{errc::not_built, "device.kind must be auto or " + std::string(built) +
                                        " in this build, got \"" + config.kind + "\""};
  const host::isa widest = host::widest_isa();
  const auto wanted = config.isa == "auto" ? widest : host::parse_isa(config.isa);
  if (!wanted || *wanted > widest)
    return failure{errc::not_built, "device.isa must be auto or at most " +
                                        std::string(name_of(widest)) +
                                        " on this processor, got \"" + config.isa + "\""};

  const std::int32_t threads = config.threads > 0 ? config.threads : machine::usable_cores();
  detail::start_kokkos(threads);

  std::unique_ptr<device> dev(new device);
  dev->isa_ = *wanted;
  dev->ops_ = detail::on_host ? &detail::host_backends() : &detail::portable_backends();
  dev->pool_ = std::make_unique<host::thread_pool>(threads);
  dev->info_.kind = built;
  dev->info_.name = detail::on_host ? machine::processor_name() : detail::exec_space::name();
  dev->info_.backend = detail::backend_name();
  dev->info_.isa = name_of(*wanted);
  const bool host_bf16 = detail::on_host && *wanted >= host::isa::avx512_bf16;
  dev->info_.multiplies_bf16 = host_bf16 || !detail::on_host;
  dev->info_.half_kv = host_bf16 ? dtype::bf16 : dtype::f16;
  dev->info_.threads = threads;
  dev->info_.memory_bytes = config.memory_bytes > 0 ? config.memory_bytes : machine::memory_bytes();
  return result<std::unique_ptr<device>>(std::move(dev));
}

device::device() : slabs_(std::make_unique<detail::host_slabs>()) {}

device::~device() {
  fence();
  if (scratch_ != nullptr) release(scratch_, scratch_bytes_);
}

result<buffer> device::allocate(std::size_t bytes, const char* label, page_hint hint) {
  bytes = bytes == 0 ? 1 : bytes;
  const std::int64_t used = memory_used();
  const auto describe = [&](const char* why) {
    return std::string(label) + ": " + why + ": needs " +
           format_bytes(static_cast<std::int64_t>(bytes)) + " (" + std::to_string(bytes) +
           " bytes), " + format_bytes(used) + " of " + format_bytes(info_.memory_bytes) +
           " are in use";
  };
  if (bytes > static_cast<std::uint64_t>(info_.memory_bytes) ||
      used > info_.memory_bytes - static_cast<std::int64_t>(bytes))
    return failure{errc::out_of_memory, describe("the allocation must fit device.memory")};
  void* data = detail::on_host && hint == page_hint::filled_at_once
                   ? slabs_->take(bytes)
                   : map_memory(bytes, hint == page_hint::filled_gradually);
  if (data == nullptr)
    return failure{errc::out_of_memory, describe("the machine refused the memory")};
  count(bytes);
  return buffer(*this, data, bytes);
}

void device::settle() {
  slabs_->settle();
}

void device::touch(const buffer& memory) {
  if constexpr (detail::on_host) {
    constexpr std::int64_t page = 4096, chunk = 512 * page; // one thread commits whole huge pages
    auto* data = static_cast<volatile unsigned char*>(memory.data());
    const auto bytes = static_cast<std::int64_t>(memory.bytes());
    pool_->run((bytes + chunk - 1) / chunk, [=](std::int64_t part) {
      for (std::int64_t at = part * chunk; at < std::min(bytes, (part + 1) * chunk); at += page)
        data[at] = data[at];
    });
  }
}

void device::count(std::size_t bytes) {
  const auto added = static_cast<std::int64_t>(bytes);
  const std::int64_t now = used_.fetch_add(added, std::memory_order_relaxed) + added;
  if (now > memory_peak()) peak_.store(now, std::memory_order_relaxed);
}

void* device::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_ && !grow_scratch(bytes + bytes / 2)) throw std::bad_alloc();
  return scratch_;
}

result<nothing> device::reserve_scratch(std::size_t bytes) {
  if (bytes <= scratch_bytes_ || grow_scratch(bytes)) return nothing{};
  return failure{errc::out_of_memory, "scratch memory: the machine refused the memory: needs " +
                                          format_bytes(static_cast<std::int64_t>(bytes))};
}

bool device::grow_scratch(std::size_t bytes) {
  fence();
  if (scratch_ != nullptr) release(scratch_, scratch_bytes_);
  scratch_ = nullptr;
  scratch_bytes_ = 0;
  const std::size_t grown = (bytes + 4095) / 4096 * 4096;
  void* data = map_memory(grown, false);
  if (data == nullptr) return false;
  count(grown);
  scratch_ = data;
  scratch_bytes_ = grown;
  return true;
}

void device::upload(void* device_dst, const void* host_src, std::size_t bytes) {
  if constexpr (detail::on_host) {
    if (bytes > 0) std::memcpy(device_dst, host_src, bytes);
  } else {
    Kokkos::deep_copy(
        detail::bytes_view<detail::memory_space>(static_cast<unsigned char*>(device_dst), bytes),
        detail::bytes_view<Kokkos::HostSpace>(
            static_cast<unsigned char*>(const_cast<void*>(host_src)), bytes));
  }
}

void device::download(void* host_dst, const void* device_src, std::size_t bytes) {
  if constexpr (detail::on_host) {
    fence();
    if (bytes > 0) std::memcpy(host_dst, device_src, bytes);
  } else {
    Kokkos::deep_copy(
        detail::bytes_view<Kokkos::HostSpace>(static_cast<unsigned char*>(host_dst), bytes),
        detail::bytes_view<detail::memory_space>(
            static_cast<unsigned char*>(const_cast<void*>(device_src)), bytes));
  }
}

void device::fence() {
  detail::exec_space().fence();
}

void device::release(void* data, std::size_t bytes) noexcept {
  if (!slabs_->give_back(data)) unmap_memory(data, bytes);
  used_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

buffer::~buffer() {
  if (owner_ != nullptr) owner_->release(data_, bytes_);
}

} // namespace twill::gpu
