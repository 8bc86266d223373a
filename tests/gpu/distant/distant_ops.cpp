// The table of op implementations of a distant device.
#include "gpu/attention/portable/attention_portable.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/linear/portable/linear_portable.hpp"
#include "gpu/portable/probe_portable.hpp"
#include "gpu/rows/portable/rows_portable.hpp"
#include "gpu/sampling/portable/sampling_portable.hpp"
#include "tests/gpu/distant/distant_backend.hpp"

namespace twill::test {

namespace {

using namespace gpu::detail;
using gpu::device;

using serial_chip = launcher<kokkos_serial, 1, false>;

/// Kokkos' Serial space runs a kernel at once. This launcher queues it on the chip, like a GPU.
struct on_chip : serial_chip {
  template <class Functor>
  static void items(const device& dev, const char* name, long n, const Functor& f) {
    chip::begin(stream_of(dev.where()),
                [&dev, name, n, f] { serial_chip::items(dev, name, n, f); });
  }
  template <class Bounds = Kokkos::LaunchBounds<>, class Functor>
  static void teams(const device& dev, const char* name, long n, const Functor& f,
                    team_shape shape = {}) {
    chip::begin(stream_of(dev.where()),
                [&dev, name, n, f, shape] { serial_chip::teams<Bounds>(dev, name, n, f, shape); });
  }
  template <class Functor>
  static std::uint64_t sum(const device& dev, const char* name, long n, const Functor& f) {
    std::uint64_t total = 0;
    const auto& stream = stream_of(dev.where());
    chip::begin(stream, [&] { total = serial_chip::sum(dev, name, n, f); });
    chip::wait(chip::end_of(stream));
    return total;
  }
};

constexpr op_backends table{{&linear_portable<on_chip>::table, &attention_portable<on_chip>::table,
                             &sampling_portable<on_chip>::table, &rows_portable<on_chip>::table,
                             &probe_portable<on_chip>::table},
                            &table};

} // namespace

const op_backends& distant_backends() {
  return table;
}
std::string start_distant(std::int32_t threads) {
  start_kokkos(threads);
  return backend_name<kokkos_serial>();
}
std::shared_ptr<const void> make_distant_instance() {
  return std::make_shared<kokkos_serial>();
}

} // namespace twill::test
