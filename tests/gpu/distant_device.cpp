#include "tests/gpu/distant_device.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <sys/mman.h>

#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/sampling_backend.hpp"
#include "gpu/detail/space.hpp"
#include "gpu/detail/transfer_backend.hpp"
#include "gpu/portable/runtime.hpp"

namespace twill::test {

namespace {

using namespace gpu::detail;
using gpu::device;
using gpu::result;

/// The memory of all distant devices. Any thread.
class protected_memory {
public:
  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    void* data =
        mmap(nullptr, bytes, protection(), MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    regions_[data] = bytes;
    return data;
  }
  void free(void* data) {
    const std::lock_guard lock(mutex_);
    munmap(data, regions_.at(data));
    regions_.erase(data);
  }
  void open() {
    const std::lock_guard lock(mutex_);
    if (users_++ == 0) protect();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    if (--users_ == 0) protect();
  }

private:
  int protection() const { return users_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE; }
  void protect() {
    for (const auto& [data, bytes] : regions_)
      mprotect(data, bytes, protection());
  }

  std::mutex mutex_;
  std::map<void*, std::size_t> regions_;
  int users_ = 0; ///< ops and copies under way
};

protected_memory memory;

struct use_of_memory {
  use_of_memory() { memory.open(); }
  use_of_memory(const use_of_memory&) = delete;
  use_of_memory& operator=(const use_of_memory&) = delete;
  ~use_of_memory() { memory.close(); }
};

/// The portable implementation of an entry, with the memory open while it runs.
template <auto Entry>
struct opened;
template <class Table, class... Args, op<Args...> Table::*Entry>
struct opened<Entry> {
  static void run(device& dev, Args... args) {
    const use_of_memory use;
    (portable_backends().get<Table>().*Entry).run(dev, args...);
  }
};

bool supports(const packed_view& w, gpu::compute_type asked) {
  return portable_linear.supports(w, asked);
}
std::int64_t linear_scratch(const device& dev, const packed_view& w, bool ordered,
                            gpu::compute_type asked, std::int64_t m) {
  return portable_linear.scratch_bytes(dev, w, ordered, asked, m);
}
void run_linear(device& dev, const gpu::linear_args& args) {
  const use_of_memory use;
  portable_linear.run(dev, args);
}
std::int64_t attention_scratch(const device& dev, std::int32_t n_heads, std::int32_t n_kv_heads,
                               std::int32_t head_dim, std::int64_t n_tokens, std::int64_t reach) {
  return portable_attention.scratch_bytes(dev, n_heads, n_kv_heads, head_dim, n_tokens, reach);
}
std::uint64_t read(device& dev, const std::uint64_t* words, std::int64_t n) {
  const use_of_memory use;
  return portable_probe.read(dev, words, n);
}
gpu::peak_rates peaks(device& dev) {
  return portable_probe.peaks(dev);
}

constexpr linear_backend distant_linear{supports, linear_scratch, run_linear, nullptr, true};
constexpr attention_backend distant_attention{
    attention_scratch, opened<&attention_backend::attend>::run,
    opened<&attention_backend::kv4_pack>::run, opened<&attention_backend::kv4_unpack>::run};
constexpr sampling_backend distant_sampling{opened<&sampling_backend::sample>::run,
                                            opened<&sampling_backend::argmax>::run,
                                            opened<&sampling_backend::token_logprobs>::run};
constexpr rows_backend distant_rows{
    opened<&rows_backend::silu_mul>::run,      opened<&rows_backend::activate>::run,
    opened<&rows_backend::scale_columns>::run, opened<&rows_backend::gather_rows>::run,
    opened<&rows_backend::embedding>::run,     opened<&rows_backend::feed_tokens>::run,
    opened<&rows_backend::rms_norm>::run,      opened<&rows_backend::layer_norm>::run,
    opened<&rows_backend::rope_angles>::run,   opened<&rows_backend::rope_and_store>::run};
constexpr probe_backend distant_probe{read, peaks};
constexpr op_backends distant_ops{
    {&distant_linear, &distant_attention, &distant_sampling, &distant_rows, &distant_probe},
    &distant_ops};

result<nothing> copy(void* to, const void* from, std::size_t bytes) {
  const use_of_memory use;
  if (bytes > 0) std::memcpy(to, from, bytes);
  return nothing{};
}

class distant_space final : public space {
public:
  explicit distant_space(std::int32_t threads)
      : facts_{.kind = "distant",
               .name = "the host, at a distance",
               .backend = start_portable(threads),
               .memory_bytes = std::int64_t{4} << 30,
               .is_host = false,
               .multiplies_bf16 = true,
               .multiplies_f16 = true,
               .half_activations = true} {}

  const space_facts& facts() const override { return facts_; }
  const op_backends& ops() const override { return distant_ops; }
  const void* instance() const override { return nullptr; }
  void* allocate(std::size_t bytes, bool) override { return memory.allocate(bytes); }
  void free(void* data, std::size_t) noexcept override { memory.free(data); }
  result<nothing> upload(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }
  result<nothing> download(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }
  result<nothing> enqueue_upload(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }
  result<nothing> enqueue_download(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }
  result<nothing> fence() override { return nothing{}; }

private:
  space_facts facts_;
};

result<nothing> copy_on_stream(void*, void* to, const void* from, std::size_t bytes) {
  return copy(to, from, bytes);
}

} // namespace

std::unique_ptr<gpu::device> open_distant(const gpu::device_config& config) {
  return device::open_on(std::make_unique<distant_space>(config.threads), config).value();
}

distant_transfers::distant_transfers()
    : usual_(&transfers()), distant_(std::make_unique<transfer_backend>(*usual_)) {
  distant_->device_is_host = false;
  distant_->to_device = distant_->to_host = distant_->begin_to_device = copy_on_stream;
  use_transfers(*distant_);
}
distant_transfers::~distant_transfers() {
  use_transfers(*usual_);
}

} // namespace twill::test
