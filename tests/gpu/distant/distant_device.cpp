// Implements gpu's space on a chip, and copies that run beside its compute.
#include "tests/gpu/distant/distant_device.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "gpu/detail/space.hpp"
#include "gpu/detail/transfer_backend.hpp"
#include "tests/gpu/distant/distant_backend.hpp"

namespace twill::test {

namespace {

using gpu::result;
using gpu::detail::space;
using gpu::detail::space_facts;
using stream_handle = std::shared_ptr<chip::stream>;

std::atomic<bool> is_gone{false};

/// The result of a wait: an error once the device was lost. Work that was begun still runs to its
/// end after the loss, which does no harm, since nothing uses its results any more.
result<nothing> outcome() {
  if (!is_gone) return nothing{};
  return failure{gpu::errc::device_lost, std::string("waiting for the device: it is gone")};
}

void begin_copy(const stream_handle& on, void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) chip::begin(on, [=] { std::memcpy(to, from, bytes); });
}
void wait_for_all(const stream_handle& on) {
  chip::wait(chip::end_of(on));
}
result<nothing> copy(const stream_handle& on, void* to, const void* from, std::size_t bytes) {
  begin_copy(on, to, from, bytes);
  wait_for_all(on);
  return outcome();
}

class distant_space final : public space {
public:
  explicit distant_space(std::int32_t threads)
      : stream_(chip::make_stream()), facts_{.kind = "distant",
                                             .name = "the host, at a distance",
                                             .backend = started(threads),
                                             .memory_bytes = std::int64_t{4} << 30,
                                             .is_host = false,
                                             .multiplies_bf16 = true,
                                             .multiplies_f16 = true,
                                             .half_activations = true},
        kokkos_(make_distant_instance()) {}

  const space_facts& facts() const override { return facts_; }
  const gpu::detail::op_backends& ops() const override { return distant_backends(); }
  const void* instance() const override { return kokkos_.get(); }
  const stream_handle& stream() const { return stream_; }

  void* allocate(std::size_t bytes, bool) override { return chip::allocate(bytes); }
  void free(void* data, std::size_t) noexcept override {
    wait_for_all(stream_);
    chip::release(data);
  }
  result<nothing> upload(void* to, const void* from, std::size_t bytes) override {
    return copy(stream_, to, from, bytes);
  }
  result<nothing> download(void* to, const void* from, std::size_t bytes) override {
    return copy(stream_, to, from, bytes);
  }
  result<nothing> enqueue_upload(void* to, const void* from, std::size_t bytes) override {
    begin_copy(stream_, to, from, bytes);
    return nothing{};
  }
  result<nothing> enqueue_download(void* to, const void* from, std::size_t bytes) override {
    begin_copy(stream_, to, from, bytes);
    return nothing{};
  }
  result<nothing> fence() override {
    wait_for_all(stream_);
    return outcome();
  }
  bool is_lost() override { return is_gone; }
  std::int64_t outside_bytes() override { return 1 << 20; }

private:
  std::string started(std::int32_t threads) {
    std::string name;
    chip::begin(stream_, [&] { name = start_distant(threads); });
    wait_for_all(stream_);
    return name;
  }

  stream_handle stream_;
  space_facts facts_;
  std::shared_ptr<const void> kokkos_;
};

void* pin(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t whole = (bytes + page - 1) / page * page;
  void* data = std::aligned_alloc(page, whole);
  if (data != nullptr) std::memset(data, 0, whole);
  return data;
}
void unpin(void* data) {
  std::free(data);
}

const stream_handle& stream_at(void* stream) {
  return *static_cast<stream_handle*>(stream);
}
chip::point& point_at(void* event) {
  return *static_cast<chip::point*>(event);
}
result<void*> make_stream() {
  return result<void*>(new stream_handle(chip::make_stream()));
}
void drop_stream(void* stream) {
  wait_for_all(stream_at(stream));
  delete static_cast<stream_handle*>(stream);
}
result<nothing> copy_and_wait(void* stream, void* to, const void* from, std::size_t bytes) {
  return copy(stream_at(stream), to, from, bytes);
}
result<nothing> begin_to_device(void* stream, void* to, const void* from, std::size_t bytes) {
  begin_copy(stream_at(stream), to, from, bytes);
  return nothing{};
}
result<void*> make_event() {
  return result<void*>(new chip::point);
}
void drop_event(void* event) {
  delete static_cast<chip::point*>(event);
}
/// The ops of a device on the host are done when they return, so its event has passed already.
result<nothing> record(const space& on, void* event) {
  point_at(event) = on.facts().is_host ? chip::point{} : chip::end_of(stream_of(on));
  return nothing{};
}
result<nothing> wait(void* event) {
  chip::wait(point_at(event));
  return outcome();
}
result<nothing> record_copies(void* stream, void* event) {
  point_at(event) = chip::end_of(stream_at(stream));
  return nothing{};
}
result<nothing> copies_follow(void* stream, void* event) {
  chip::follow(stream_at(stream), point_at(event));
  return nothing{};
}
result<nothing> device_follows(const space& on, void* event) {
  if (on.facts().is_host)
    chip::wait(point_at(event));
  else
    chip::follow(stream_of(on), point_at(event));
  return nothing{};
}

constexpr gpu::detail::transfer_backend distant{.device_is_host = false,
                                                .pin = pin,
                                                .unpin = unpin,
                                                .make_stream = make_stream,
                                                .drop_stream = drop_stream,
                                                .to_device = copy_and_wait,
                                                .to_host = copy_and_wait,
                                                .begin_to_device = begin_to_device,
                                                .make_event = make_event,
                                                .drop_event = drop_event,
                                                .record = record,
                                                .wait = wait,
                                                .record_copies = record_copies,
                                                .copies_follow = copies_follow,
                                                .device_follows = device_follows};

bool distant_is_present() {
  return true;
}
result<std::unique_ptr<space>> open_distant_space(std::int32_t, std::int32_t threads) {
  if (auto there = outcome(); !there.ok()) return there.error();
  gpu::detail::use_transfers(distant);
  return result<std::unique_ptr<space>>(std::make_unique<distant_space>(threads));
}
constexpr gpu::detail::chip_kind kinds[] = {{"distant", distant_is_present, open_distant_space}};

std::span<const gpu::detail::chip_kind> usual_chips;

} // namespace

const stream_handle& stream_of(const space& distant) {
  return static_cast<const distant_space&>(distant).stream();
}

std::unique_ptr<gpu::device> open_distant(const gpu::device_config& config) {
  return gpu::device::open_on(std::make_unique<distant_space>(config.threads), config).value();
}

distant_transfers::distant_transfers() : usual_(&gpu::detail::transfers()) {
  gpu::detail::use_transfers(distant);
}
distant_transfers::~distant_transfers() {
  gpu::detail::use_transfers(*usual_);
}

distant_kind::distant_kind() : usual_(&gpu::detail::transfers()) {
  usual_chips = gpu::detail::chips();
  gpu::detail::use_chips(kinds);
}
void distant_kind::lose() {
  is_gone = true;
}
distant_kind::~distant_kind() {
  is_gone = false;
  gpu::detail::use_chips(usual_chips);
  gpu::detail::use_transfers(*usual_);
}

} // namespace twill::test
