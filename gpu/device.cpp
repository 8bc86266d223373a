#include "gpu/device.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "config/base/units.hpp"
#include "gpu/detail/host_slabs.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/host/thread_pool.hpp"
#include "gpu/machine.hpp"

namespace twill::gpu {

namespace {

/// Every build lists all kinds of chips; a kind that the build does not support returns an error
/// when it is opened.
constexpr detail::chip_kind built[] = {{"cuda", detail::cuda_is_present, detail::open_cuda_space}};

constinit std::span<const detail::chip_kind> known = built;

constinit std::atomic<bool> chip_was_lost{false};

std::int32_t threads_of(const device_config& config) {
  return config.threads > 0 ? config.threads : machine::usable_cores();
}

/// The kind of chip that a configuration selects; null where it selects the host or names an
/// unknown kind.
const detail::chip_kind* chip_of(const device_config& config) {
  for (const detail::chip_kind& chip : known)
    if (config.kind == chip.kind || (config.kind == "auto" && chip.is_present())) return &chip;
  return nullptr;
}

/// The space that a configuration asks for.
result<std::unique_ptr<detail::space>> open_space(const device_config& config) {
  const std::int32_t threads = threads_of(config);
  if (config.kind != "host" && chip_was_lost)
    return failure{errc::device_lost,
                   std::string("opening the device: an earlier failure lost it to this process")};
  if (const auto* chip = chip_of(config)) return chip->open(config.id, threads);
  if (config.kind == "auto" || config.kind == "host")
    return result<std::unique_ptr<detail::space>>(detail::open_host_space(threads));
  std::string words = "auto, host";
  for (const detail::chip_kind& chip : known)
    words += (&chip == &known.back() ? " or " : ", ") + std::string(chip.kind);
  return failure{errc::not_built, "device.kind must be " + words + ", got \"" + config.kind + "\""};
}

/// Throws device_lost_error if a space has refused a call.
void demand(const result<nothing>& done) {
  if (!done.ok()) throw device_lost_error(done.detail());
}

} // namespace

namespace detail {

std::span<const chip_kind> chips() {
  return known;
}

void use_chips(std::span<const chip_kind> kinds) {
  known = kinds;
  chip_was_lost = false;
}

void lose_chip() {
  chip_was_lost = true;
}

} // namespace detail

result<std::unique_ptr<device>> device::open(const device_config& config) {
  auto opened = open_space(config);
  if (!opened.ok()) return opened.error();
  return open_on(std::move(opened.value()), config);
}

std::int64_t device::chip_memory(const device_config& config) {
  if (chip_of(config) == nullptr) return 0;
  const auto opened = open_space(config);
  return opened.ok() ? opened.value()->facts().memory_bytes : 0;
}

result<std::unique_ptr<device>> device::open_on(std::unique_ptr<detail::space> where,
                                                const device_config& config) {
  const host::isa widest = host::widest_isa();
  const auto wanted = config.isa == "auto" ? widest : host::parse_isa(config.isa);
  if (!wanted || *wanted > widest)
    return failure{errc::not_built, "device.isa must be auto or at most " +
                                        std::string(name_of(widest)) +
                                        " on this processor, got \"" + config.isa + "\""};

  const std::int32_t threads = threads_of(config);
  std::unique_ptr<device> dev(new device);
  dev->space_ = std::move(where);
  const detail::space_facts& facts = dev->space_->facts();
  dev->isa_ = *wanted;
  dev->ops_ = config.ops != nullptr ? config.ops : &dev->space_->ops();
  dev->pool_ = std::make_unique<host::thread_pool>(threads);
  dev->info_.kind = facts.kind;
  dev->info_.name = facts.name;
  dev->info_.backend = facts.backend;
  dev->info_.isa = name_of(*wanted);
  const bool host_bf16 = facts.is_host && *wanted >= host::isa::avx512_bf16;
  dev->info_.multiplies_bf16 = host_bf16 || facts.multiplies_bf16;
  dev->info_.multiplies_f16 = facts.multiplies_f16;
  dev->info_.half_activations = facts.half_activations;
  dev->info_.half_kv = host_bf16 ? dtype::bf16 : dtype::f16;
  dev->info_.threads = threads;
  dev->info_.memory_bytes = config.memory_bytes > 0 ? config.memory_bytes : facts.memory_bytes;
  dev->info_.spare_bytes = config.memory_bytes > 0 ? 0 : facts.spare_bytes;
  return result<std::unique_ptr<device>>(std::move(dev));
}

device::device() : slabs_(std::make_unique<detail::host_slabs>()) {}

device::~device() {
  [[maybe_unused]] const auto done = space_->fence(); // a lost device has nothing to wait for
  if (scratch_ != nullptr) release(scratch_, scratch_bytes_);
}

bool device::memory_is_host() const {
  return space_->facts().is_host;
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
  void* data = memory_is_host() && hint == page_hint::filled_at_once
                   ? slabs_->take(bytes)
                   : space_->allocate(bytes, hint == page_hint::filled_gradually);
  if (data == nullptr)
    return failure{errc::out_of_memory, describe("the machine refused the memory")};
  count(bytes);
  return buffer(*this, data, bytes);
}

void device::settle() {
  // A small model's first steps then run as fast as all others.
  constexpr std::chrono::milliseconds at_once{750};
  slabs_->settle(at_once);
}

void device::touch(const buffer& memory) {
  if (!memory_is_host()) return;
  constexpr std::int64_t page = 4096, chunk = 512 * page; // one thread commits whole huge pages
  auto* data = static_cast<volatile unsigned char*>(memory.data());
  const auto bytes = static_cast<std::int64_t>(memory.bytes());
  pool_->run((bytes + chunk - 1) / chunk, [=](std::int64_t part) {
    for (std::int64_t at = part * chunk; at < std::min(bytes, (part + 1) * chunk); at += page)
      data[at] = data[at];
  });
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
  void* data = space_->allocate(grown, false);
  if (data == nullptr) return false;
  count(grown);
  scratch_ = data;
  scratch_bytes_ = grown;
  return true;
}

void device::upload(void* device_dst, const void* host_src, std::size_t bytes) {
  ++exchanges_.uploads;
  ++exchanges_.waits;
  demand(space_->upload(device_dst, host_src, bytes));
}

void device::download(void* host_dst, const void* device_src, std::size_t bytes) {
  ++exchanges_.downloads;
  ++exchanges_.waits;
  demand(space_->download(host_dst, device_src, bytes));
}

void device::enqueue_upload(void* device_dst, const void* pinned_src, std::size_t bytes) {
  ++exchanges_.uploads;
  demand(space_->enqueue_upload(device_dst, pinned_src, bytes));
}

void device::enqueue_download(void* pinned_dst, const void* device_src, std::size_t bytes) {
  ++exchanges_.downloads;
  demand(space_->enqueue_download(pinned_dst, device_src, bytes));
}

void device::fence() {
  ++exchanges_.waits;
  demand(space_->fence());
}

bool device::chip_is_lost() {
  return chip_was_lost;
}

bool device::is_lost() {
  if (space_->is_lost()) detail::lose_chip();
  return !memory_is_host() && chip_was_lost;
}

std::int64_t device::outside_bytes() {
  return space_->outside_bytes();
}

void device::release(void* data, std::size_t bytes) noexcept {
  if (!slabs_->give_back(data)) space_->free(data, bytes);
  used_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

buffer::~buffer() {
  if (owner_ != nullptr) owner_->release(data_, bytes_);
}

} // namespace twill::gpu
