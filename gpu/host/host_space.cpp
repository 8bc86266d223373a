#include <cstring>

#include <sys/mman.h>

#include "gpu/detail/huge_pages.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/machine.hpp"
#include "gpu/memory_meter.hpp"
#include "gpu/portable/runtime.hpp"

namespace twill::gpu::detail {

namespace {

class host_space final : public space {
public:
  explicit host_space(std::int32_t threads)
      : facts_{.kind = "host",
               .name = machine::processor_name(),
               .backend = start_portable(threads),
               .memory_bytes = machine::memory_bytes(),
               .is_host = true} {}

  const space_facts& facts() const override { return facts_; }
  const op_backends& ops() const override { return host_backends(); }
  const void* instance() const override { return nullptr; }

  /// Committed page by page, in huge pages where they are asked for and the system has them.
  void* allocate(std::size_t bytes, bool huge_pages) override {
    void* data = huge_pages ? map_huge_pages(bytes) : map_pages(bytes);
    if (data != nullptr) meter_->add(data, bytes);
    return data;
  }
  void free(void* data, std::size_t bytes) noexcept override {
    meter_->remove(data);
    munmap(data, bytes);
  }

  result<nothing> upload(void* device_dst, const void* host_src, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(device_dst, host_src, bytes);
    return nothing{};
  }
  result<nothing> download(void* host_dst, const void* device_src, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(host_dst, device_src, bytes);
    return nothing{};
  }
  result<nothing> enqueue_upload(void* device_dst, const void* host_src,
                                 std::size_t bytes) override {
    return upload(device_dst, host_src, bytes);
  }
  result<nothing> enqueue_download(void* host_dst, const void* device_src,
                                   std::size_t bytes) override {
    return download(host_dst, device_src, bytes);
  }
  /// Ops are done when they return.
  result<nothing> fence() override { return nothing{}; }
  std::shared_ptr<const memory_meter> meter() const override { return meter_; }

private:
  static void* map_pages(std::size_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  }

  std::shared_ptr<memory_meter> meter_ = std::make_shared<memory_meter>();
  space_facts facts_;
};

} // namespace

std::unique_ptr<space> open_host_space(std::int32_t threads) {
  return std::make_unique<host_space>(threads);
}

} // namespace twill::gpu::detail
