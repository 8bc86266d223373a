// op: one entry of a backend's table. It says how an op is computed there, and for which arguments.
//
// A table may leave an entry empty, or let it support some arguments only; the device's portable
// table computes the rest (run_op() in gpu/detail/op_backends.hpp chooses). So a new kernel for a
// GPU is one entry, and nothing else changes. Executor thread only.
#pragma once

namespace twill::gpu {
class device;
}

namespace twill::gpu::detail {

template <class... Args>
class op {
public:
  using function = void (*)(device&, Args...);
  /// Must not depend on the number of rows in the batch: a row has the same bits in any batch.
  using condition = bool (*)(const device&, Args...);

  constexpr op() = default; ///< supports nothing
  /// Supports what `supported` accepts; everything where it is null.
  constexpr op(function f, condition supported = nullptr) : run_(f), supported_(supported) {}

  bool supports(const device& dev, Args... args) const {
    return run_ != nullptr && (supported_ == nullptr || supported_(dev, args...));
  }
  void run(device& dev, Args... args) const { run_(dev, args...); }
  constexpr function get() const { return run_; }

private:
  function run_ = nullptr;
  condition supported_ = nullptr;
};

} // namespace twill::gpu::detail
