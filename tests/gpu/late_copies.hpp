// late_copies: while an object of this class exists, asynchronous copies to the device end as late
// as they may: when the device, a thread or a later copy waits for them. Compute runs on the host
// and is done when the call returns.
#pragma once

namespace twill::gpu::detail {
struct transfer_backend;
}

namespace twill::test {

class late_copies {
public:
  late_copies();
  late_copies(const late_copies&) = delete;
  late_copies& operator=(const late_copies&) = delete;
  ~late_copies();
  /// Copies that ended because the device was made to wait for them.
  int ended_for_the_device() const;

private:
  const gpu::detail::transfer_backend* usual_;
};

} // namespace twill::test
