// late_copies: while one lives, copies to the device that are only begun end as late as they may:
// when the device, a thread or a later copy waits for them. Compute is the host's and is done when
// it returns.
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
