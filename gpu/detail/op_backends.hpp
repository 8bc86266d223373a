// op_backends: the tables of functions that a device runs its ops with, one table per folder of
// ops. device::open() chooses them once; an op calls through its table and holds no condition on
// the backend.
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
  /// The Kokkos implementations on the same device, which support everything. They compute what
  /// `tables` do not support.
  const op_backends* portable;

  template <class Table>
  constexpr const Table& get() const {
    return *std::get<const Table*>(tables);
  }
};

/// Runs the op that `Entry` is, &rows_backend::rms_norm for example: by the device's own table
/// where that supports the arguments, else by its portable one.
template <auto Entry, class... Args>
void run_op(device& dev, const Args&... args) {
  const auto choose = [&]<class Table, class Op>(Op Table::*entry) {
    const Op& own = dev.ops().get<Table>().*entry;
    const Op& chosen = own.supports(dev, args...) ? own : dev.ops().portable->get<Table>().*entry;
    chosen.run(dev, args...);
  };
  choose(Entry);
}

/// The host's own implementations, for a device that is this process's processor.
const op_backends& host_backends();
/// The Kokkos implementations in the host's execution space. They are what other backends are
/// compared with.
const op_backends& portable_backends();

} // namespace twill::gpu::detail
