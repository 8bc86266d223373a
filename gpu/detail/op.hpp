// op: one entry of a backend's table: the function that computes an op, and the condition that says
// which arguments the function supports.
//
// A table may leave an entry empty, or an entry may support some arguments only; run_op() in
// gpu/detail/op_backends.hpp then takes the entry of the device's portable table. A new kernel for
// a GPU thus changes one entry and nothing else. Executor thread only.
#pragma once

namespace twill::gpu {
class device;
}

namespace twill::gpu::detail {

template <class... Args>
class op {
public:
  using function = void (*)(device&, Args...);
  /// A condition must not depend on the number of rows in the batch, so that a row has the same
  /// bits in any batch.
  using condition = bool (*)(const device&, Args...);

  constexpr op() = default; ///< supports nothing
  /// Supports the arguments that `supported` accepts, or all arguments if `supported` is null.
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
