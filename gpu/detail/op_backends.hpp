// op_backends: the tables of functions with which a device runs its ops, one table per folder of
// ops. device::open() chooses the tables once; an op calls a function of its table and does not
// test which backend it runs on.
#pragma once

#include <tuple>

#include "gpu/device.hpp"

namespace twill::gpu::detail {

struct linear_backend;
struct attention_backend;
struct sampling_backend;
struct rows_backend;
struct probe_backend;

struct op_backends {
  std::tuple<const linear_backend*, const attention_backend*, const sampling_backend*,
             const rows_backend*, const probe_backend*>
      tables;
  /// The Kokkos implementations for the device, which support all arguments. They compute an op
  /// where the entry in `tables` does not support its arguments.
  const op_backends* portable;

  template <class Table>
  constexpr const Table& get() const {
    return *std::get<const Table*>(tables);
  }
};

/// Runs the op whose table entry is `Entry`, for example &rows_backend::rms_norm. The device's own
/// table runs the op if its entry supports the arguments; otherwise the portable table runs it.
template <auto Entry, class... Args>
void run_op(device& dev, const Args&... args) {
  const auto choose = [&]<class Table, class Op>(Op Table::*entry) {
    const Op& own = dev.ops().get<Table>().*entry;
    const Op& chosen = own.supports(dev, args...) ? own : dev.ops().portable->get<Table>().*entry;
    chosen.run(dev, args...);
  };
  choose(Entry);
}

/// The host's own implementations, for a device that is the processor of this process.
const op_backends& host_backends();
/// The Kokkos implementations in the host's execution space. Tests compare other backends with
/// them.
const op_backends& portable_backends();

} // namespace twill::gpu::detail
