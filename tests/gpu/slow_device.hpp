// slow_device: while an object of this class exists, no marker (gpu/copy_stream.hpp: a point in the
// device's work) is reached until the test lets it pass. At most one object may exist at a time;
// its functions may be called from any thread.
#pragma once

#include <memory>

namespace twill::gpu::detail {
struct transfer_backend;
}

namespace twill::test {

class slow_device {
public:
  slow_device();
  slow_device(const slow_device&) = delete;
  slow_device& operator=(const slow_device&) = delete;
  ~slow_device();
  /// Lets `waits` waits for markers end.
  void let_pass(int waits = 1);
  /// Waits that end from now on fail, as waits for a lost device do.
  void lose();

private:
  const gpu::detail::transfer_backend* usual_;
  std::unique_ptr<gpu::detail::transfer_backend> slow_;
};

} // namespace twill::test
